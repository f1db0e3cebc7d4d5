"""The claims of BEES and their tests here, for the opening table of its page."""

from __future__ import annotations

from collections.abc import Sequence

from studies.bees.cells import EVERY, MAJORITY, TUNED
from studies.claims import Claim, Test, between
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
    ),
    ("SMART raises the score of a model after SimCSE", "Table 1"): (
        ("M14", "M11", "sst"),
        ("M15", "M12", "qqp"),
        ("M17", "M13", "sts"),
    ),
    ("a weight of 3 of SMART is better for similarity than 1", "Figure 2"): (
        ("M17", "M16", "sts"),
    ),
    ("SimCSE on the text of all tasks is better than on that of the task", "Table 1"): (
        ("M18", "M14", "sst"),
    ),
    ("single-task models are above multi-task ones", "Table 1"): (
        ("M4", "M7", "sst"),
        ("M5", "M7", "qqp"),
        ("M6", "M7", "sts"),
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
    ),
}


# row, task, the higher and the lower figure of its error analysis, width of the scale
ERRORS = {
    ("predicted similarities are higher than the labels", "Figure 5"): (
        *("M17", "sts", "mean_prediction", "mean_label", 5),
    ),
    ("sentiment is predicted more positive where there is a negation", "section 6"): (
        *("M14", "sst", "negated_error", "other_error", 4),
    ),
}


def claims(report: Report) -> list[Claim]:
    """Return the claims with their tests on the stored figures."""
    found = [
        Claim(text, source, [test_of(report, *pair) for pair in pairs])
        for (text, source), pairs in PAIRS.items()
    ]
    for (text, source), error in ERRORS.items():
        found.append(Claim(text, source, [error_test(report, *error)]))
    return found


def error_test(report: Report, row: str, task: str, higher: str, lower: str, width: int) -> Test:
    """Return the test that one figure of a row's error analysis is above another one.

    The difference is a share of the `width` of the scale.
    """
    stored = report.results.values(report.cell(row), "analysis", task)
    differences = {seed: (one[higher] - one[lower]) / width for seed, one in stored.items()}
    return Test(f"{row}, in per cent of the scale", differences, unfair(report, [row]))


def test_of(report: Report, better: str, other: str, task: str) -> Test:
    """Return the test that the row `better` is above the row `other`."""
    first, second = (figures(report, row, task) for row in (better, other))
    differences = between(first, second)
    reasons = unfair(report, (better, other))
    reasons += [
        f"{row} is not above always saying the most frequent class"
        for row, found in ((better, first), (other, second))
        if found and min(found.values()) <= MAJORITY.get(task, -1)
    ]
    return Test(f"{better} - {other}, {task}", differences, reasons)


def figures(report: Report, row: str, task: str) -> dict[int, float]:
    """Return a row's main metric of a task, or its overall score, by seed."""
    keys = ("dev", "overall") if task == "overall" else ("dev", task, LEADERBOARD[task])
    return report.results.values(report.cell(row), *keys)


def unfair(report: Report, rows: Sequence[str]) -> list[str]:
    """Return the conditions of a fair test that the settings of these rows do not meet."""
    base, found = report.request.base, []
    cells = [report.cell(row) for row in rows]
    if base.limit is not None:
        found.append(f"{base.limit} training examples of each task, not all")
    rates = {one.config.optimizer.lr for one in cells if not one.config.freeze_encoder}
    if rates - {TUNED.get(base.encoder)}:
        found.append("the rate was not tuned for this encoder")
    if len({one.config.epochs for one in cells if not EVERY[one.name].until_flat}) > 1:
        found.append("the two have different numbers of epochs")
    return found
