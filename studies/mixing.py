"""Ways to mix and combine the three tasks: run.py --mode reproduce --table mixing --data DIR

Every cell trains on as many examples as three passes over Quora capped by --limit, drawn from the
same examples of each task with the same random seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from multitask.settings.config import RunConfig
from reports.tables import markdown_table
from studies.results import Cell
from studies.runner import long_training
from studies.study import Report, Study, StudyRequest, notes_of
from tasks import CS224N

MIXTURES: dict[str, dict[str, Any]] = {
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
SEEDS, EPOCHS, PASSES, LIMIT = (11711,), 3, 3, 8000


def cells(request: StudyRequest) -> list[Cell]:
    return [
        Cell(name, mixture(settings, request), SEEDS, long_training, keeps_folder=True)
        for name, settings in MIXTURES.items()
    ]


def mixture(settings: Mapping[str, Any], request: StudyRequest) -> RunConfig:
    """Return a configuration that trains on `PASSES * limit` examples, for any step and epoch."""
    limit = request.base.limit if isinstance(request.base.limit, int) else LIMIT
    base = request.base.changed(mode="multitask", tasks=CS224N, limit=limit, epochs=EPOCHS)
    config = base.changed(similarity_scale=1.0, **settings)  # as in the stored cells
    per_step = 1 if config.schedule.one_batch else len(CS224N)
    first = config.first()
    first_epochs = first.epochs if first else 0  # with one batch per step
    # With one step per epoch:
    batches_per_round = first_epochs + (config.epochs - first_epochs) * per_step
    steps = round(PASSES * limit / (batches_per_round * config.batch_size))
    return config.changed(batches_per_step=per_step, steps_per_epoch=max(1, steps))


def page(report: Report) -> list[str]:
    """Return the parts of the page: the finished cells, best overall score first."""
    kept = [
        (one, found)
        for one in report.cells
        for found in report.results.figures_by_seed(one).values()
    ]
    rows = []
    for one, found in sorted(kept, key=lambda item: -item[1]["dev"]["overall"]):
        config, dev = one.config.flat(), found["dev"]
        rates = [pair["conflict_rate"] for pair in found["conflicts"].values()]
        rows.append(
            [
                one.name,
                config["sampling"],
                config["schedule"],
                config["combiner"],
                f"{dev['sst']['accuracy']:.3f}",
                f"{dev['qqp']['accuracy']:.3f}",
                f"{dev['sts']['pearson']:.3f}",
                f"{dev['overall']:.4f}",
                f"{sum(rates) / len(rates):.0%}" if rates else "",
                f"{found['training_seconds'] / 60:.0f} min",
            ]
        )
    header = "cell sampling schedule combiner SST QQP STS overall conflicts time"
    table = markdown_table(header.split(), rows)
    return [notes_of(STUDY, report.request), table]


STUDY = Study(
    name="mixing",
    title="Ways to mix and combine the three tasks",
    notes="every cell trains on three times as many examples as --limit keeps of a task, from the "
    "same seed. Tasks cut to one size are equally large.",
    cells=cells,
    page=page,
    precision="bf16",
    limit=LIMIT,
    limit_shares=False,
    by_beginning=False,
    audited=True,
)
