"""Best recipe for one encoder on three tasks: run.py --mode reproduce --table best --data DIR"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.cells import write_cell
from reports.ensembles import ensemble_runs, soup_runs
from reports.tables import markdown_table
from studies.results import Cell, Content
from studies.runner import long_training
from studies.study import Report, Study, StudyRequest, notes_of
from tasks import CS224N
from tasks.metrics import LEADERBOARD

RECIPE = """
No paper's table: what measured well here, put together. Sentiment starts from an encoder that read
SST-2's labelled phrases, paraphrase from one that read MRPC and is trained with and without SMART,
similarity from the encoder as it is; each with several seeds, whose mean weights are a soup and
whose mean predictions the ensemble. Nothing is selected among the members. Dev chooses the best
epoch of a run, and chose between this recipe and similarity after SimCSE (87.8 for each of three
seeds).
"""
SEEDS = (11711, 1, 2)
EPOCHS = {"sst": 4, "qqp": 3, "sts": 4}
MERGED = (*(f"soup of {task}" for task in CS224N), "ensemble")
SMART_EPOCHS = 2  # an epoch with SMART takes 2.5 times as long


def cells(request: StudyRequest) -> list[Cell]:
    """Return all cells except those from which others start."""
    base = request.base.changed(lr=request.lr) if request.lr else request.base

    def cell(
        name: str, task: str, epochs: int, seeds: int, before: Cell | None = None, **settings: Any
    ) -> Cell:
        config = base.changed(
            tasks=(task,),
            epochs=request.epochs or epochs,
            similarity_scale=1.0,  # as in the stored cells
            drop_leaks=True,
            **settings,
        )
        return Cell(name, config, SEEDS[:seeds], long_training, before, keeps_folder=True)

    phrases, pairs = cell("phrases", "sst2", 1, 1), cell("mrpc", "mrpc", 2, 1)
    return [
        cell("sst", "sst", EPOCHS["sst"], 3, phrases),
        cell("sts", "sts", EPOCHS["sts"], 3),
        cell("qqp", "qqp", EPOCHS["qqp"], 2, pairs),
        cell("qqp-smart", "qqp", SMART_EPOCHS, 1, pairs, smart_weight={"qqp": 1.0}),
    ]


def merged(report: Report) -> dict[str, Content]:
    """Make one soup per task and the ensemble if all runs are here; return their metrics.

    Else return those of the stored ones that were made from the stored runs.
    """
    runs = report.request.runs
    folders = report.member_folders(
        {task: [one for one in report.cells if one.config.tasks == (task,)] for task in CS224N}
    )
    files = {name: f"{name.replace(' ', '-')}.json" for name in MERGED}
    if folders is None:
        stored = {name: report.stored_merge(file) for name, file in files.items()}
        return {name: metrics for name, metrics in stored.items() if metrics is not None}
    found: dict[str, Content] = {
        f"soup of {task}": soup_runs(several, False, 0, runs / f"soup-{task}", overwrite=True)
        for task, several in folders.items()
    }
    found["ensemble"] = ensemble_runs(folders, "average", 0, runs / "ensemble", overwrite=True)
    for name, metrics in found.items():
        write_cell(report.results.folder / files[name], metrics)
    return found


def page(report: Report) -> list[str]:
    """Return the parts of the page: dev figures of runs, soups and the ensemble."""
    header = ["run", "starts from", *(f"{t} {m}" for t, m in LEADERBOARD.items()), "minutes"]
    rows = []
    for one in report.cells:
        for name, kept in report.results.figures_by_run([one]).items():
            start = one.base_cell.name if one.base_cell else "-"
            rows.append([name, start, *scores(kept), f"{kept['training_seconds'] / 60:.0f}"])
    found = merged(report)
    rows += [[name, "", *scores(metrics), ""] for name, metrics in found.items()]
    parts = [
        notes_of(STUDY, report.request),
        RECIPE,
        "## Dev",
        report.omitted(),
        markdown_table(header, rows),
    ]
    if "ensemble" in found:
        dev = found["ensemble"]["dev"]
        parts.append(
            f"Ensemble: overall {dev['overall']:.4f}, plain mean {dev['overall_plain_mean']:.4f}. "
            "Its prediction files for test lie in `ensemble/predictions` under `--runs`."
        )
    return parts


def scores(found: Mapping[str, Any]) -> list[str]:
    """Format the main metric of each task in per cent."""
    dev = found["dev"]
    return [f"{100 * dev[t][m]:.1f}" if m in dev.get(t, {}) else "" for t, m in LEADERBOARD.items()]


STUDY = Study(
    name="best",
    title="The best this encoder gives",
    notes="settings drawn from the trials in results/; Quora's figures are flattered, for the "
    "encoder's own training data holds duplicates of Quora.",
    cells=cells,
    page=page,
    by_beginning=False,
    audited=True,
)
