"""Comparisons behind default values, on dev: run.py --mode reproduce --table similarity-scale

Each study compares a few settings over the same seeds; the first setting is the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.tables import markdown_table, mean_and_spread
from studies.results import Cell
from studies.runner import long_training
from studies.study import Report, Study, StudyRequest, notes_of
from tasks import CS224N

SEEDS = (11711, 1, 2)
Changes = Mapping[str, Mapping[str, Any]]  # cell name -> settings


def comparison(
    name: str,
    title: str,
    settings: Mapping[str, Any],
    changes: Changes,
    metrics: Sequence[tuple[str, ...]],
) -> Study:
    """Return a study that compares `changes` to `settings` by `metrics`, paths in dev metrics."""

    def cells(request: StudyRequest) -> list[Cell]:
        given = {"limit": request.base.limit, "epochs": request.epochs}
        given = {key: value for key, value in given.items() if value is not None}
        base = request.base.changed(**{**settings, **given})
        return [
            Cell(cell, base.changed(**change), SEEDS, long_training, keeps_folder=True)
            for cell, change in changes.items()
        ]

    def page(report: Report) -> list[str]:
        rows = [row(report, cell, metrics) for cell in report.cells]
        header = ["setting", "seeds", *(" ".join(path) for path in metrics)]
        table = markdown_table(header, rows)
        return [notes_of(study, report.request), table]

    notes = (
        "scores on dev, of the best epoch on dev; mean ± standard deviation over the seeds, in "
        "points, and the difference from the first row over the seeds that both have."
    )
    study = Study(
        name,
        title,
        notes,
        cells,
        page,
        precision="bf16",
        limit=settings.get("limit"),
        options=("seeds", "epochs"),
        audited=True,
    )
    return study


def row(report: Report, cell: Cell, metrics: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a row: mean ± deviation over seeds, and the difference from the first cell."""
    reference = report.cells[0]
    found = [cell.name, str(len(report.results.figures_by_seed(cell)))]
    for path in metrics:
        own, others = (report.results.values(one, "dev", *path) for one in (cell, reference))
        text = mean_and_spread([100 * score for score in own.values()], 2) if own else ""
        if cell is not reference and (both := own.keys() & others.keys()):
            change = 100 * sum(own[seed] - others[seed] for seed in both) / len(both)
            text += f" ({change:+.2f})"
        found.append(text)
    return found


def smart(weight: float, **changes: Any) -> dict[str, Any]:
    return {"smart_weight": {"sts": weight}, **changes}


SIMILARITY_SCALE = comparison(
    "similarity-scale",
    "The scale of similarities in the loss, in the README's main command",
    {
        "mode": "multitask",
        "tasks": CS224N,
        "sampling": "annealed",
        "combiner": "pcgrad",
        "steps_per_epoch": 450,  # 64,800 examples in all
    },
    {"0-1": {"similarity_scale": 1.0}, "0-5": {"similarity_scale": 5.0}},
    [("overall",), ("sst", "accuracy"), ("qqp", "accuracy"), ("sts", "pearson")],
)
SMART_PLACE = comparison(
    "smart-place",
    "The place and the size of SMART's noise, on similarity",
    {
        "mode": "single",
        "tasks": ("sts",),
        "limit": 4000,
        "lr": 2e-5,
        "head_lr": 2e-5,
        "similarity_scale": 1.0,  # as in the stored cells
    },
    {
        "plain": {},
        "normalised-1": smart(1.0),
        "projected-1": smart(1.0, smart_variant="projected"),
        "normalised-3": smart(3.0),
        "projected-3": smart(3.0, smart_variant="projected"),
        "words-normalised-1": smart(1.0, smart_place="words"),
    },
    [("sts", "pearson"), ("sts", "spearman")],
)
