"""The best shared model and its ensemble: run.py --mode reproduce --table best --data DIR

The recipe is `BEST` of studies/sharing_cells.py, whose runs and results it shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reports.tables import markdown_table
from studies import sharing
from studies.sharing_cells import BEST, SEEDS, cells
from studies.study import Report, notes_of
from tasks import CS224N

RECIPE = """
One shared encoder for sentiment, paraphrase and similarity, trained with one task per step.
Similarity has its own copy of the upper half of the layers. The model learns from teachers: a
single-task run of each task, and a cross-encoder of paraphrase. The stored weights are a running
average over the training steps. The ensemble is the mean of the predictions of all its runs. Dev
chooses the best epoch of a run; it also chose this recipe among those of --table sharing.
"""


def page(report: Report) -> list[str]:
    """Return the parts of the page: dev figures of the runs and of their ensemble."""
    header = ["model", *CS224N, "overall", "minutes"]
    rows, best = [], report.cell(BEST)
    for name, kept in report.results.figures_by_run([best]).items():
        rows.append([name, *percent(kept), f"{kept['training_seconds'] / 60:.0f}"])
    ensemble = report.ensemble({task: [best] for task in CS224N}, "average")
    if ensemble is not None:
        rows.append(["ensemble of them", *percent(ensemble), ""])
    return [
        notes_of(STUDY, report.request),
        RECIPE,
        "## Dev",
        markdown_table(header, rows),
        f"The prediction files for test are in `{BEST}-seed{SEEDS[0]}/predictions` (one run) "
        "and `ensemble/predictions` under `--runs`. They are not scored here: the test files have "
        "no labels.",
    ]


def percent(found: Mapping[str, Any]) -> list[str]:
    """Format the leaderboard's metrics and the overall score in per cent."""
    return [f"{100 * value:.1f}" for value in sharing.scores([found["dev"]]).values()]


STUDY = replace(
    sharing.STUDY,
    name="best",
    notes="the best epoch of each run was chosen on the dev set that is shown. Quora's figures are "
    "flattered, for the encoder's own training data holds duplicates of Quora.",
    title="The best shared model and its ensemble",
    page=page,
    cells=lambda request: [one for one in cells(request) if one.name == BEST],
    options=("epochs", "lr"),
    folder="sharing",
    page_ending="-best",
)
