"""The claims of BEES and their tests here, for the opening table of its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from studies.bees.cells import ENSEMBLE, SEEDS
from studies.bees.fairness import (
    NOISE,
    chosen_with_other_batches,
    chosen_without,
    has_normalised_noise,
    keys_of,
    noise_reason,
    unfair,
    untrained,
)
from studies.claims import Claim, Test, between
from studies.fairness import MAJORITY
from studies.results import Content
from studies.study import Report
from tasks.metrics import LEADERBOARD

# claim, place in the paper, tests: better row, other row, task (or overall)
PAIRS = {
    ("the bi-encoder with mean pooling is above the baseline", "Table 1"): (
        ("M4", "M1", "sst"),
        ("M5", "M2", "qqp"),
        ("M6", "M3", "sts"),
    ),
    ("SimCSE pre-training raises the score", "Table 1"): (
        ("M11", "M4", "sst"),
        ("M12", "M5", "qqp"),
        ("M13", "M6", "sts"),
        ("M11-mean", "M4", "sst"),
        ("M12-mean", "M5", "qqp"),
        ("M13-mean", "M6", "sts"),
    ),
    ("SMART raises the score of a model after SimCSE", "Table 1"): (
        ("M14", "M11", "sst"),
        ("M15", "M12", "qqp"),
        ("M17", "M13", "sts"),
        ("M16", "M13", "sts"),
        ("M14-projected", "M11-mean", "sst"),
        ("M15-projected", "M12-mean", "qqp"),
        ("M17-projected", "M13-mean", "sts"),
        ("M16-projected", "M13-mean", "sts"),
    ),
    ("a weight of 3 of SMART is better for similarity than 1", "Figure 2"): (
        ("M17", "M16", "sts"),
        ("M17-projected", "M16-projected", "sts"),
    ),
    ("SimCSE on the text of all tasks is better than on that of the task", "Table 1"): (
        ("M18", "M14", "sst"),
    ),
    ("multi-task models are above the baseline", "section 5.4"): (
        ("M7", "M1", "sst"),
        ("M7", "M2", "qqp"),
        ("M7", "M3", "sts"),
    ),
    ("single-task models are above multi-task ones", "Table 1"): (
        ("M4", "M7", "sst"),
        ("M4", "M8", "sst"),
        ("M5", "M7", "qqp"),
        ("M5", "M8", "qqp"),
        ("M6", "M7", "sts"),
        ("M6", "M8", "sts"),
        ("M4-equal", "M7", "sst"),
        ("M6-equal", "M7", "sts"),
    ),
    ("training the largest task first is better overall", "section 5.4"): (
        ("M8", "M7", "overall"),
        ("M9", "M10", "overall"),
    ),
    ("gradient surgery raises the overall score", "abstract"): (
        ("M7-surgery", "M7", "overall"),
        ("M8-surgery", "M8", "overall"),
        ("M9-surgery", "M9", "overall"),
    ),
    ("mean pooling is better than [CLS]", "Table 3"): (
        ("M12", "T3-qqp", "qqp"),
        ("M13", "T3-sts", "sts"),
    ),
    ("ReLU is better than a sigmoid at the end of the similarity head", "Table 4"): (
        ("M13", "T4-simcse", "sts"),
        ("M17", "T4-smart", "sts"),
        ("M6", "M6-sigmoid", "sts"),
    ),
}


@dataclass(frozen=True)
class ErrorAnalysis:
    """What the error analysis of some rows must show: one figure above another, or above 0.

    The difference is a share of the `width` of the scale. `reasons` are those against a fair test
    that all rows share.
    """

    rows: tuple[str, ...]
    task: str
    higher: str
    lower: str | None
    width: int
    reasons: tuple[str, ...] = ()


ERRORS = {
    ("predicted similarities are higher than the labels", "Figure 5"): ErrorAnalysis(
        ("M17", "M17-projected"), "sts", "mean_prediction", "mean_label", 5
    ),
    ("sentiment is predicted more positive where there is a negation", "section 6"): ErrorAnalysis(
        *(("M14",), "sst", "negation_shift", None, 4),
        ("any negation counts, not only one before a positive word",),
    ),
}


def claims(report: Report) -> list[Claim]:
    """Return the claims with their tests on the stored figures.

    If rows were requested, only tests of these rows are returned, beside rows that are stored.
    """
    found = [
        Claim(text, source, [test_of(report, *pair) for pair in pairs if asked(report, pair[:2])])
        for (text, source), pairs in PAIRS.items()
    ]
    for (text, source), errors in ERRORS.items():
        tests = [error_test(report, errors, row) for row in errors.rows if asked(report, [row])]
        found.append(Claim(text, source, tests))
    if report.request.rows is None:
        found.append(
            Claim("the ensemble is above all other models", "Table 1", ensemble_tests(report))
        )
    return [claim for claim in found if claim.tests]


def ensemble_tests(report: Report) -> list[Test]:
    """Return the tests of the ensemble of the first seed's runs beside the best run of a task."""
    ensemble = merged_members(report)
    gains = dict[str, dict[int, float]]()
    for task, metric in LEADERBOARD.items():
        gains[task] = {}
        if ensemble is not None:
            _, best = best_run(report, task)
            gains[task][SEEDS[0]] = ensemble["dev"][task][metric] - best
    what = "the ensemble - the best run of all rows and seeds"
    return [Test(f"{what}, {task}", gain) for task, gain in gains.items()]


def merged_members(report: Report) -> Content | None:
    """Return the figures of BEES' ensemble of the first seed's runs; None without any."""
    members = {task: [report.cell(row) for row in rows] for task, rows in ENSEMBLE.items()}
    return report.ensemble(members, "vote", 1)


def best_run(report: Report, task: str) -> tuple[str, float]:
    """Return the name and the score of the run, of any row, that is best on a task."""
    runs, metric = report.results.figures_by_run(report.cells), LEADERBOARD[task]
    found = {name: kept["dev"][task][metric] for name, kept in runs.items() if task in kept["dev"]}
    best = max(found, key=lambda name: found[name])
    return best, found[best]


def asked(report: Report, rows: Sequence[str]) -> bool:
    """Return whether one of these rows was requested, and the others too or are stored."""
    wanted = report.request.rows
    if wanted is None:
        return True
    stored = report.results.figures_by_seed
    missing = [row for row in rows if row not in wanted and not stored(report.cell(row))]
    return not missing and any(row in wanted for row in rows)


def error_test(report: Report, errors: ErrorAnalysis, row: str) -> Test:
    """Return the test of a row's error analysis."""
    stored = report.results.values(report.cell(row), "analysis", errors.task)
    lower = errors.lower
    differences = {
        seed: (one[errors.higher] - (one[lower] if lower else 0)) / errors.width
        for seed, one in stored.items()
    }
    reasons = [*errors.reasons, *unfair(report, [row]), *untrained(report, [row], errors.task)]
    if has_normalised_noise(report.cell(row).config):
        reasons.append(NOISE)
    return Test(f"{row}, in per cent of the scale", differences, reasons)


def test_of(report: Report, better: str, other: str, task: str) -> Test:
    """Return the test that the row `better` is above the row `other`."""
    first, second = (figures(report, row, task) for row in (better, other))
    differences = between(first, second)
    rows = better, other
    reasons = [*unfair(report, rows), *chosen_without(report, rows), *untrained(report, rows, task)]
    behind = other if differences and fmean(differences.values()) > 0 else better
    reasons += chosen_with_other_batches(report, behind)
    cells = [report.cell(row) for row in rows]
    reasons += noise_reason(cells[0].config, cells[1].config)
    reasons += [
        f"{row} is not above always saying the most frequent class"
        for row, found in ((better, first), (other, second))
        if found and min(found.values()) <= MAJORITY.get(task, -1)
    ]
    return Test(f"{better} - {other}, {task}", differences, reasons)


def figures(report: Report, row: str, task: str) -> dict[int, float]:
    """Return a row's main metric of a task, or its overall score, by seed."""
    return report.results.values(report.cell(row), *keys_of(task))
