"""The claims of BEES and their tests here, for the opening table of its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from multitask.combiners import PCGrad
from multitask.regularizers import Smart
from multitask.sampling import RoundRobin
from multitask.settings.config import RunConfig
from studies.bees.cells import ENSEMBLE, EVERY, OWN_RATES, PAPER, SEEDS, SIGMOID, tuned_rate
from studies.claims import Claim, Test, between
from studies.fairness import MAJORITY, batch_reason, limit_reason, pooling_reason
from studies.results import Cell, Content
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


ALIKE = 1.1  # largest ratio of training examples that counts as the same number
NOISE = "SMART's normalised noise acts like random noise"
OTHER_NOISE = "the weights are the paper's, which were chosen for normalised noise"
RISING = 0.005  # gain in the last epoch from which a run counts as not trained to its end


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


def untrained(report: Report, rows: Sequence[str], task: str) -> list[str]:
    """Return a reason for each row that still gains in its last epoch."""
    return [
        f"{row} still gains {100 * gain:.1f} points in its last epoch, on average"
        for row in rows
        if (gain := last_gain(report, row, task)) > RISING
    ]


def chosen_without(report: Report, rows: Sequence[str]) -> list[str]:
    """Return a reason for each row with a method that the others lack, and no rate of its own."""
    by_row = {row: methods_of(report.cell(row)) for row in rows}
    encoder, shared = report.request.base.encoder, set.intersection(*by_row.values())
    return [
        f"the rate of {row} was chosen without {' and '.join(sorted(own))}"
        for row, methods in by_row.items()
        if (own := methods - shared)
        and tuned_rate(row, encoder) is not None
        and row not in OWN_RATES.get(encoder, {})
    ]


def chosen_with_other_batches(report: Report, row: str) -> list[str]:
    """Return a reason for a row of a single task whose rate was chosen with the usual batches.

    Asked only of the row that is behind: with a better rate it could be ahead.
    """
    config, usual = report.cell(row).config, PAPER["batch_size"]
    same = config.mode == "multitask" or config.batch_size == usual
    tuned = tuned_rate(row, report.request.base.encoder) is not None
    if same or not tuned or "batch_size" in report.request.changes:  # `unfair` names the change
        return []
    return [f"the rate of {row} was chosen with batches of {usual}"]


def methods_of(cell: Cell) -> set[str]:
    """Return the methods of a cell that claims compare, in words."""
    config, found = cell.config, set[str]()
    if cell.base_cell is not None:
        found.add(f"SimCSE on {', '.join(cell.base_cell.config.tasks)}")
    smart = (one for one in config.regularizers if isinstance(one, Smart))
    found |= {f"SMART of weight {weight:g}" for one in smart for weight in one.weights.values()}
    if isinstance(config.combiner, PCGrad):
        found.add("gradient surgery")
    if has_sigmoid(config):
        found.add("a sigmoid")
    if config.mode == "multitask" and config.sampling.name != RoundRobin.name:
        found.add(f"{config.sampling.name} sampling")
    return found


def figures(report: Report, row: str, task: str) -> dict[int, float]:
    """Return a row's main metric of a task, or its overall score, by seed."""
    return report.results.values(report.cell(row), *keys_of(task))


def keys_of(task: str) -> tuple[str, ...]:
    """Return the keys of a task's main dev metric, or of the overall score, in stored figures."""
    return ("dev", "overall") if task == "overall" else ("dev", task, LEADERBOARD[task])


def last_gain(report: Report, row: str, task: str) -> float:
    """Return the mean gain of a figure in the last epoch; 0 without figures of two epochs."""
    found = []
    for history in report.results.values(report.cell(row), "history").values():
        ends: list[Any] = [epoch for epoch in history if "dev" in epoch][-2:]
        for key in keys_of(task):
            ends = [one[key] for one in ends if key in one]
        if len(ends) == 2:
            found.append(ends[1] - ends[0])
    return fmean(found) if found else 0.0


def noise_reason(first: RunConfig, second: RunConfig) -> list[str]:
    """Return a reason if two runs differ in SMART and its noise does not suit the comparison.

    Two weights are compared fairly only with the noise that they were chosen for, which is the
    normalised one.
    """
    both = first, second
    smart = [[one for one in run.regularizers if isinstance(one, Smart)] for run in both]
    if smart[0] == smart[1]:
        return []
    if any(map(has_normalised_noise, both)):
        return [NOISE]
    return [OTHER_NOISE] if all(smart) else []


def has_normalised_noise(config: RunConfig) -> bool:
    """Return whether a run has SMART with the noise of the public implementations."""
    smart = (one for one in config.regularizers if isinstance(one, Smart))
    return any(one.variant == "normalised" for one in smart)


def has_sigmoid(config: RunConfig) -> bool:
    """Return whether the similarities of a run end in a sigmoid."""
    return config.task_options.items() >= SIGMOID["task_options"].items()


def unfair(report: Report, rows: Sequence[str]) -> list[str]:
    """Return the conditions of a fair test that these rows do not meet."""
    cells = [report.cell(row) for row in rows]
    trained = [one for one in cells if not EVERY[one.name].until_flat]
    found = limit_reason(report.request.base, "task")
    found += dict.fromkeys(line for one in cells for line in pooling_reason(one.config))
    starts = {one.base_cell.name: one.base_cell for one in cells if one.base_cell is not None}
    alike = len(cells) > 1 and len(starts) == 1 and all(one.base_cell for one in cells)
    if not alike:
        lines = (line for one in starts.values() for line in pooling_reason(one.config))
        found += [f"SimCSE trains {line}" for line in dict.fromkeys(lines)]
    encoder = report.request.base.encoder
    untuned = (one for one in trained if one.config.optimizer.lr != tuned_rate(one.name, encoder))
    for tasks in dict.fromkeys(one.config.tasks for one in untuned):
        found.append(f"the rate was not tuned for {', '.join(tasks)}")
    found += batch_reason(one.config for one in cells)
    if "batch_size" in report.request.changes:
        found.append("rates were chosen with other batch sizes")
    examples = [count for one in trained if (count := examples_of(report, one))]
    if examples and max(examples) > ALIKE * min(examples):
        few, many = (float(f"{count:.3g}") for count in (min(examples), max(examples)))
        found.append(f"about {few:,.0f} training examples against {many:,.0f}")
    return found


def examples_of(report: Report, cell: Cell) -> float | None:
    """Estimate the mean number of examples that a cell's runs trained on; None without runs.

    That is the stored speed times the stored time, both rounded.
    """
    runs = report.results.figures_by_seed(cell).values()
    counts = [
        one["examples_per_second"] * one["training_seconds"]
        for one in runs
        if "examples_per_second" in one
    ]
    return fmean(counts) if counts else None
