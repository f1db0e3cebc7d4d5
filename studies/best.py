"""The best shared model and its ensemble: run.py --mode reproduce --table best --data DIR

The recipe is `together` of studies/sharing.py, whose runs and results it shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ensemble.runs import ensemble_runs
from reports.cells import write_cell
from reports.tables import markdown_table
from studies import sharing
from studies.results import Content
from studies.study import Report, notes_of
from tasks import CS224N

RECIPE = """
One shared encoder for sentiment, paraphrase and similarity, trained with one task per step and a
low-rank adapter per task, beside sentiment of two classes as an auxiliary task. It learns from
teachers: single-task runs, and cross-encoders of the tasks on pairs. Its weights are a running
average. The ensemble is the mean of the predictions of its runs. Nothing is selected among the
members. Dev chooses the best epoch of a run.
"""


def ensemble_of(report: Report) -> Content | None:
    """Make the ensemble if all runs are here; return its metrics.

    Else return those of the stored one if it was made from the stored runs.
    """
    runs, one = report.request.runs, report.cell(sharing.TOGETHER)
    folders = report.member_folders({task: [one] for task in CS224N})
    if folders is None:
        return report.stored_merge("ensemble.json")
    found: Content = ensemble_runs(folders, "average", 0, runs / "ensemble", overwrite=True)
    write_cell(report.results.folder / "ensemble.json", found)
    return found


def page(report: Report) -> list[str]:
    """Return the parts of the page: dev figures of the runs and of their ensemble."""
    header = ["model", *CS224N, "overall", "minutes"]
    rows = []
    for name, kept in report.results.figures_by_run([report.cell(sharing.TOGETHER)]).items():
        rows.append([name, *percent(kept), f"{kept['training_seconds'] / 60:.0f}"])
    if (ensemble := ensemble_of(report)) is not None:
        rows.append(["ensemble of them", *percent(ensemble), ""])
    return [
        notes_of(STUDY, report.request),
        RECIPE,
        report.omitted(),
        "## Dev",
        markdown_table(header, rows),
        "The prediction files for test are in `together-seed11711/predictions` (one run) and "
        "`ensemble/predictions` under `--runs`. They are not scored here: the test files have no "
        "labels.",
    ]


def percent(found: Mapping[str, Any]) -> list[str]:
    """Format the leaderboard's metrics and the overall score in per cent."""
    return [f"{100 * value:.1f}" for value in sharing.scores([found["dev"]]).values()]


STUDY = replace(
    sharing.STUDY,
    name="best",
    title="The best shared model and its ensemble",
    page=page,
    wanted=lambda cell, request: cell.name == sharing.TOGETHER,
    options=(),
    folder="sharing",
    page_file="best.md",
)
