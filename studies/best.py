"""The best shared model and its ensemble: run.py --mode reproduce --table best --data DIR

The recipe is `BEST` of studies/sharing.py, whose runs and results it shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reports.tables import markdown_table
from studies import sharing
from studies.study import Report, notes_of
from tasks import CS224N

RECIPE = """
One shared encoder for sentiment, paraphrase and similarity, trained with one task per step, whose
upper half of the layers similarity has a copy of. It learns from teachers: a single-task run of
each task, and a cross-encoder of paraphrase. Its weights are a running average. The ensemble is the
mean of the predictions of its runs. Nothing is selected among the members. Dev chooses the best
epoch of a run; it also chose the recipe, among those of --table sharing.
"""


def page(report: Report) -> list[str]:
    """Return the parts of the page: dev figures of the runs and of their ensemble."""
    header = ["model", *CS224N, "overall", "minutes"]
    rows, best = [], report.cell(sharing.BEST)
    for name, kept in report.results.figures_by_run([best]).items():
        rows.append([name, *percent(kept), f"{kept['training_seconds'] / 60:.0f}"])
    ensemble = report.ensemble({task: [best] for task in CS224N}, "average")
    if ensemble is not None:
        rows.append(["ensemble of them", *percent(ensemble), ""])
    return [
        notes_of(STUDY, report.request),
        RECIPE,
        report.omitted(),
        "## Dev",
        markdown_table(header, rows),
        f"The prediction files for test are in `{sharing.BEST}-seed11711/predictions` (one run) "
        "and `ensemble/predictions` under `--runs`. They are not scored here: the test files have "
        "no labels.",
    ]


def percent(found: Mapping[str, Any]) -> list[str]:
    """Format the leaderboard's metrics and the overall score in per cent."""
    return [f"{100 * value:.1f}" for value in sharing.scores([found["dev"]]).values()]


STUDY = replace(
    sharing.STUDY,
    name="best",
    title="The best shared model and its ensemble",
    page=page,
    cells=lambda request: [one for one in sharing.cells(request) if one.name == sharing.BEST],
    options=("epochs", "lr"),
    folder="sharing",
    page_ending="-best",
)
