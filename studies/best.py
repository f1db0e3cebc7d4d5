"""The best shared model and its ensemble: run.py --mode reproduce --table best --data DIR

The recipe is `together` of studies/sharing.py, whose runs and results it shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reports.cells import write_cell
from reports.ensembles import ensemble_runs, soup_runs
from reports.tables import markdown_table
from studies import sharing
from studies.results import Content
from studies.study import Report, notes_of
from tasks import CS224N

MERGED = ("soup", "ensemble")
RECIPE = """
One shared encoder for sentiment, paraphrase and similarity, trained with one task per step. It
learns from teachers: single-task runs, and cross-encoders of the tasks on pairs. The soup is the
mean of the weights of its runs, one model again; the ensemble is the mean of their predictions.
Nothing is selected among the members. Dev chooses the best epoch of a run.
"""


def merged(report: Report) -> dict[str, Content]:
    """Make the soup and the ensemble if all runs are here; return their metrics.

    Else return those of the stored ones that were made from the stored runs.
    """
    runs, one = report.request.runs, report.cell(sharing.TOGETHER)
    folders = report.member_folders({task: [one] for task in CS224N})
    if folders is None:
        stored = {name: report.stored_merge(f"{name}.json") for name in MERGED}
        return {name: metrics for name, metrics in stored.items() if metrics is not None}
    found: dict[str, Content] = {
        "soup": soup_runs(folders["sst"], False, 0, runs / "soup", overwrite=True),
        "ensemble": ensemble_runs(folders, "average", 0, runs / "ensemble", overwrite=True),
    }
    for name, metrics in found.items():
        write_cell(report.results.folder / f"{name}.json", metrics)
    return found


def page(report: Report) -> list[str]:
    """Return the parts of the page: dev figures of the runs, their soup and their ensemble."""
    header = ["model", *CS224N, "overall", "minutes"]
    rows = []
    for name, kept in report.results.figures_by_run([report.cell(sharing.TOGETHER)]).items():
        rows.append([name, *percent(kept), f"{kept['training_seconds'] / 60:.0f}"])
    rows += [[f"{name} of them", *percent(metrics), ""] for name, metrics in merged(report).items()]
    return [
        notes_of(STUDY, report.request),
        RECIPE,
        report.omitted(),
        "## Dev",
        markdown_table(header, rows),
        "The prediction files for test are in `together-seed11711/predictions` (one run), "
        "`soup/predictions` and `ensemble/predictions` under `--runs`. They are not scored here: "
        "the test files have no labels.",
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
