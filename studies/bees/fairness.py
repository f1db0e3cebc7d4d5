"""Conditions of a fair test that rows of BEES meet or not."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from multitask.combiners import PCGrad
from multitask.regularizers import Smart
from multitask.sampling import RoundRobin
from multitask.settings.config import RunConfig
from studies.bees.cells import EVERY, OWN_RATES, PAPER, tuned_rate
from studies.fairness import batch_reason, limit_reason, pooling_reason
from studies.results import Cell
from studies.study import Report
from tasks.metrics import LEADERBOARD

ALIKE = 1.1  # largest ratio of training examples that counts as the same number
NOISE = "SMART's normalised noise acts like random noise"
OTHER_NOISE = "the weights are the paper's, which were chosen for normalised noise"
RISING = 0.005  # gain in the last epoch from which a run counts as not trained to its end


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
        and not has_own_rate(row, encoder)
    ]


def chosen_with_other_batches(report: Report, row: str) -> list[str]:
    """Return a reason for a row of a single task whose rate was chosen with the usual batches.

    Asked only of the row that is behind: with a better rate it could be ahead.
    """
    config, usual = report.cell(row).config, PAPER["batch_size"]
    same = config.mode == "multitask" or config.batch_size == usual
    encoder = report.request.base.encoder
    tuned = tuned_rate(row, encoder) is not None and not has_own_rate(row, encoder)
    changed = "batch_size" in report.request.changes  # `unfair` names it
    if same or not tuned or changed:
        return []
    return [f"the rate of {row} was chosen with batches of {usual}"]


def has_own_rate(row: str, encoder: str) -> bool:
    """Return whether a row's rate was chosen with its own methods and batches."""
    return row in OWN_RATES.get(encoder, {})


def methods_of(cell: Cell) -> set[str]:
    """Return the methods of a cell that claims compare, in words."""
    config, found = cell.config, set[str]()
    if cell.base_cell is not None:
        found.add(f"SimCSE on {', '.join(cell.base_cell.config.tasks)}")
    smart = (one.by_task(config.tasks) for one in config.regularizers if isinstance(one, Smart))
    found |= {f"SMART of weight {weight:g}" for one in smart for weight in one.values()}
    if isinstance(config.combiner, PCGrad):
        found.add("gradient surgery")
    if has_sigmoid(config):
        found.add("a sigmoid")
    if config.mode == "multitask" and config.sampling.name != RoundRobin.name:
        found.add(f"{config.sampling.name} sampling")
    return found


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
    return any(one.to_json().get("activation") == "sigmoid" for one in config.tasks.values())


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
    for tasks in dict.fromkeys(tuple(one.config.tasks) for one in untuned):
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
