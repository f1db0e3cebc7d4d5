"""Ways to mix and combine the three tasks, side by side: python -m studies.mixing --data DIR

Every cell trains on as many examples as three passes over Quora capped by --limit, drawn from the
same examples of each task, from the same seed. A finished cell is kept as one JSON file and not
run again; the table of all finished ones is printed and written beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.entry_point import start
from multitask.config import RunConfig
from reports.tables import markdown_table
from studies.arguments import seed
from studies.cell_store import Cell, faults_of, read_cells
from studies.cells import run_cells, study_parser, write_table
from studies.faults import left_out

TASKS = ("sst", "qqp", "sts")
CELLS: dict[str, dict[str, Any]] = {
    "round-robin-joint-sum": {},
    "round-robin-joint-pcgrad": {"combiner": "pcgrad"},
    "annealed-joint-sum": {"sampling": "annealed"},
    "annealed-joint-pcgrad": {"sampling": "annealed", "combiner": "pcgrad"},
    "annealed-individual-sum": {"sampling": "annealed", "schedule": "individual"},
    "qqp-first-then-joint-sum": {"schedule": "first-then-joint", "first_task": "qqp", "epochs": 4},
    "round-robin-joint-epo": {"combiner": "epo"},
    "square-root-joint-upgrad": {"sampling": "square-root", "combiner": "upgrad"},
    "round-robin-joint-mgda": {"combiner": "mgda"},
    "round-robin-joint-uncertainty": {"combiner": "uncertainty"},
    "temperature-joint-cagrad": {"sampling": "temperature", "combiner": "cagrad"},
}
EPOCHS, PASSES = 3, 3


def cell_config(settings: Mapping[str, Any], base: RunConfig) -> RunConfig:
    """A cell's configuration: `PASSES * limit` examples, whatever a step and an epoch are."""
    config = base.changed(similarity_scale=1.0, **settings)  # that of the kept cells
    per_step = 1 if config.schedule.one_batch else len(TASKS)
    first = config.first()
    alone = first.epochs if first else 0  # epochs of one batch a step
    batches_per_round = alone + (config.epochs - alone) * per_step  # with one step an epoch
    limit = base.limit if isinstance(base.limit, int) else 0
    steps = round(PASSES * limit / (batches_per_round * config.batch_size))
    return config.changed(batches_per_step=per_step, steps_per_epoch=max(1, steps))


def table(cells: Sequence[Cell], folder: Path) -> str:
    """The finished cells, best overall score first; how many are left out, and why."""
    found = read_cells(cells, folder)
    rows = []
    for name, kept in sorted(found.items(), key=lambda item: -item[1]["dev"]["overall"]):
        config, dev = kept["config"], kept["dev"]
        rates = [pair["conflict_rate"] for pair in kept["conflicts"].values()]
        rows.append(
            [
                name,
                config["sampling"],
                config["schedule"],
                config["combiner"],
                f"{dev['sst']['accuracy']:.3f}",
                f"{dev['qqp']['accuracy']:.3f}",
                f"{dev['sts']['pearson']:.3f}",
                f"{dev['overall']:.4f}",
                f"{sum(rates) / len(rates):.0%}" if rates else "",
                f"{kept['training_seconds'] / 60:.0f} min",
            ]
        )
    header = "cell sampling schedule combiner SST QQP STS overall conflicts time"
    text = markdown_table(header.split(), rows)
    faults = left_out(faults_of(cells, folder))
    return f"{text}\n\n{faults}" if faults else text


def main() -> None:
    parser = study_parser("mixing", __doc__, tuple(CELLS), limit=8000)
    parser.add_argument("--seed", type=seed, default=11711)
    args = parser.parse_args()
    base = RunConfig(
        mode="multitask",
        tasks=TASKS,
        data=args.data,
        limit=args.limit,
        encoder=args.encoder,
        precision=args.precision,
        epochs=EPOCHS,
        seed=args.seed,
    )
    cells = [Cell(name, cell_config(settings, base)) for name, settings in CELLS.items()]
    if not args.kept_only:
        run_cells([one for one in cells if one.name in args.cells], args.results, args.runs)
    text = table(cells, args.results)
    write_table(args.results, text)
    print(text)


if __name__ == "__main__":
    start("python -m studies.mixing", main)
