"""The best an encoder gives on the three tasks: run.py --mode reproduce --table best --data DIR

No paper's table: what measured well here, put together. Sentiment starts from an encoder that read
SST-2's labelled phrases, paraphrase from one that read MRPC and is trained with and without SMART,
similarity from the encoder as it is; each with several seeds, whose mean weights are a soup and
whose mean predictions the ensemble. Nothing is selected among the members. Dev chooses the best
epoch of a run, and chose between this recipe and similarity after SimCSE (87.8 for each of three
seeds).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.atomic_files import write_whole
from multitask.config import RunConfig
from reports.cells import read_cell, write_cell
from reports.ensembles import ensemble_runs, soup_runs
from reports.tables import markdown_table
from studies.cell_store import Cell, faults_of, finished_folder, kept_cell, made_of, read_cells
from studies.cells import run_cells
from studies.faults import left_out
from studies.study_request import StudyRequest
from tasks import CS224N
from tasks.metrics import LEADERBOARD

SEEDS = (11711, 1, 2)
EPOCHS = {"sst": 4, "qqp": 3, "sts": 4}
MERGED = (*(f"soup of {task}" for task in CS224N), "ensemble")
SMART_EPOCHS = 2  # an epoch with it takes as long as two and a half


def names() -> list[str]:
    return [one.name for one in cells(RunConfig(mode="single", tasks=()), Path())]


def cells(base: RunConfig, runs: Path, epochs: int | None = None) -> list[Cell]:
    """All runs, those that others start from within them; `epochs` for all, where given."""

    def single(task: str, count: int, **settings: Any) -> RunConfig:
        # The scale is that of the kept cells.
        config = base.changed(tasks=(task,), epochs=epochs or count, similarity_scale=1.0)
        return config.changed(drop_leaks=True, **settings)

    phrases = Cell("phrases", single("sst2", 1, seed=SEEDS[0]))
    pairs = Cell("mrpc", single("mrpc", 2, seed=SEEDS[0]))
    start = {"sst": phrases, "qqp": pairs}

    def run(name: str, task: str, count: int, **settings: Any) -> Cell:
        before = start.get(task)
        init = None if before is None else str(runs / before.name)
        return Cell(name, single(task, count, init=init, **settings), before)

    found = [run(f"{t}-seed{s}", t, EPOCHS[t], seed=s) for t in ("sst", "sts") for s in SEEDS]
    found += [run(f"qqp-seed{s}", "qqp", EPOCHS["qqp"], seed=s) for s in SEEDS[:2]]
    smart = {"smart_weight": {"qqp": 1.0}, "seed": SEEDS[0]}
    return [*found, run("qqp-smart", "qqp", SMART_EPOCHS, **smart)]


def reproduce(asked: StudyRequest, command: str, notes: str) -> str:
    """Run what is not there yet; with all of it, soups, ensemble, and results/best.md."""
    every = cells(
        (asked.base.changed(lr=asked.lr) if asked.lr else asked.base), asked.runs, asked.epochs
    )
    for one in every:  # one of another configuration is refused before hours of work
        kept_cell(one, asked.results)
    chosen = [one for one in every if asked.rows is None or one.name in asked.rows]
    if not asked.kept_only:
        run_cells(chosen, asked.results, asked.runs)
    kept = read_cells(every, asked.results)
    merged: dict[str, Mapping[str, Any]] = {}
    if not asked.kept_only and all(finished_folder(one, asked.runs) for one in every):
        merged = merge(every, asked.results, asked.runs)
    else:  # folders of runs are not kept, what was made of them is
        for name in MERGED:
            file = asked.results / f"{file_of(name)}.json"
            if file.exists() and made_of(found := read_cell(file), kept):
                merged[name] = found
    faults = left_out(faults_of(every, asked.results))
    text = report(kept, merged, command, notes, faults)
    write_whole(asked.report, text)
    return text


def merge(every: Sequence[Cell], results: Path, runs: Path) -> dict[str, Mapping[str, Any]]:
    """A soup a task, and the ensemble with its test prediction files; what metrics.json holds."""
    members = {
        task: [runs / one.name for one in every if one.config.tasks == (task,)] for task in CS224N
    }
    found: dict[str, Mapping[str, Any]] = {
        f"soup of {task}": soup_runs(several, False, 0, runs / f"soup-{task}", overwrite=True)
        for task, several in members.items()
    }
    found["ensemble"] = ensemble_runs(members, "average", 0, runs / "ensemble", overwrite=True)
    for name, metrics in found.items():
        write_cell(results / f"{file_of(name)}.json", metrics)
    return found


def file_of(merged: str) -> str:
    return merged.replace(" ", "-")


def report(
    kept: Mapping[str, Mapping[str, Any]],
    merged: Mapping[str, Mapping[str, Any]],
    command: str,
    notes: str,
    faults: str = "",
) -> str:
    """results/best.md; `faults` is a sentence on runs that are left out."""
    header = ["run", "starts from", *(f"{t} {m}" for t, m in LEADERBOARD.items()), "minutes"]
    rows = [
        [name, str(cell["config"]["init"] or "-"), *scores(cell), minutes(cell)]
        for name, cell in kept.items()
    ]
    rows += [[name, "", *scores(metrics), ""] for name, metrics in merged.items()]
    parts = ["# The best this encoder gives", f"`{command}`", notes, __doc__ or ""]
    parts += ["## Dev", *([faults] if faults else []), markdown_table(header, rows)]
    if "ensemble" in merged:
        dev = merged["ensemble"]["dev"]
        parts.append(
            f"Ensemble: overall {dev['overall']:.4f}, plain mean {dev['overall_plain_mean']:.4f}. "
            "Its prediction files for test lie in `ensemble/predictions` under `--runs`."
        )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def scores(found: Mapping[str, Any]) -> list[str]:
    """Main metrics in per cent, by task."""
    dev = found["dev"]
    return [f"{100 * dev[t][m]:.1f}" if m in dev.get(t, {}) else "" for t, m in LEADERBOARD.items()]


def minutes(cell: Mapping[str, Any]) -> str:
    return f"{cell['training_seconds'] / 60:.0f}"
