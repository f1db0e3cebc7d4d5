"""Comparison of systems with the first one: differences, their intervals, and a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np

from common.errors import all_names, counted, escape_unsafe
from reports.scores import Cell, TaskScores, overall_tasks, read_tasks, seeds_of
from reports.systems import System
from tasks.metrics import METRICS, OVERALL, mean_score, worst_value

RESAMPLES = 2000


class Difference(NamedTuple):
    """The difference of a system from the first one on a task, or overall.

    `means` are those of the first system and of this one over their seeds. `resampled` are
    differences on bootstrap samples of the examples and the seeds.
    """

    system: str
    task: str
    metric: str
    means: tuple[float, float]
    resampled: np.ndarray
    examples: int

    @property
    def difference(self) -> float:
        return self.means[1] - self.means[0]

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % percentile interval over examples and seeds."""
        low, high = np.quantile(self.resampled, [0.025, 0.975])
        return float(low), float(high)

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = self.interval
        return low > 0 or high < 0


@dataclass(frozen=True)
class Comparison:
    """Systems, their scores by task, and the differences of all others from the first one."""

    systems: tuple[System, ...]
    tasks: Mapping[str, TaskScores]
    differences: tuple[Difference, ...]

    @property
    def first(self) -> str:
        return self.systems[0].name


def compare(systems: Sequence[System]) -> Comparison:
    """Compare each system with the first one on their common tasks, and overall."""
    tasks, first, found = read_tasks(systems), systems[0], []
    shared = [name for name in first.tasks if any(name in one.tasks for one in systems[1:])]
    samples = {name: resampled(tasks[name]) for name in shared}
    for other in systems[1:]:
        several = [
            difference(tasks[name], samples[name], first.name, other.name)
            for name in shared
            if name in other.tasks
        ]
        found += [*overall_difference(several), *several]
    return Comparison(tuple(systems), tasks, tuple(found))


def resampled(one: TaskScores) -> dict[Cell, np.ndarray]:
    """Return the main metric of each run on bootstrap samples of the examples: (RESAMPLES,).

    The samples are the same for all runs (Efron and Tibshirani, 1993, section 13).
    """
    score, count = METRICS[one.metric], len(one.ids)
    draw = np.random.default_rng(crc32(one.task.name.encode()))
    found: dict[Cell, list[float]] = {cell: [] for cell in one.predictions}
    for _ in range(RESAMPLES):
        rows = draw.integers(count, size=count)
        for cell, predictions in one.predictions.items():
            found[cell].append(score(predictions[rows], one.targets[rows]))
    return {cell: np.array(scores) for cell, scores in found.items()}


def difference(
    one: TaskScores, samples: Mapping[Cell, np.ndarray], first: str, other: str
) -> Difference:
    """Compare two systems on a task, on samples of the examples and of the seeds."""
    cells = [one.cells(first), one.cells(other)]
    paired = [seed for _, seed in cells[0]] == [seed for _, seed in cells[1]]
    means = []
    for number, several in enumerate(cells):
        draw = np.random.default_rng(0 if paired else number)  # the same seeds for every task
        scores = np.stack([samples[cell] for cell in several])
        drawn = draw.integers(len(several), size=scores.shape)
        means.append(np.take_along_axis(scores, drawn, 0).mean(0))
    return Difference(
        system=other,
        task=one.task.name,
        metric=one.metric,
        means=(one.mean(first), one.mean(other)),
        resampled=means[1] - means[0],
        examples=len(one.ids),
    )


def overall_difference(differences: Sequence[Difference]) -> list[Difference]:
    """Combine a system's differences into that of the overall score; none for one task."""
    by_task = {one.task: one for one in differences}
    several = [by_task[name] for name in overall_tasks(by_task)]
    if not several:
        return []
    metrics = {one.task: one.metric for one in several}
    sides = [{one.task: one.means[side] for one in several} for side in (0, 1)]
    before, after = (mean_score(side, metrics) for side in sides)
    parts = [one.resampled / (1 - worst_value(one.metric)) for one in several]
    return [
        Difference(
            system=several[0].system,
            task=OVERALL,
            metric="score",
            means=(before, after),
            resampled=np.mean(parts, axis=0),
            examples=sum(one.examples for one in several),
        )
    ]


def verdicts(found: Comparison) -> list[str]:
    """Return one line per system but the first, or about a lone system, then warnings."""
    lines = [about(found, other) for other in found.systems[1:]] or [about_one(found)]
    return [escape_unsafe(text) for text in [*lines, *warnings(found)]]


def about(found: Comparison, other: System) -> str:
    """Return the overall difference of a system, or that of the only task, and the clear ones."""
    several = [one for one in found.differences if one.system == other.name]
    if not several:
        return f"{other.name} and {found.first} have no task in common."
    main, rest = several[0], several[1:]
    place = OVERALL if main.task == OVERALL else f"on {main.task}"
    before, after = (f"{100 * mean:.1f}" for mean in main.means)
    if main.clear:
        side = "above" if main.difference > 0 else "below"
        points = f"{abs(100 * main.difference):.1f} points {side} {found.first}"
        text = f"{other.name} is {points} {place}: {after} against {before}"
    else:
        text = f"No clear difference {place}: {other.name} {after}, {found.first} {before}"
    above = [one.task for one in rest if one.clear and one.difference > 0]
    below = [one.task for one in rest if one.clear and one.difference < 0]
    text += f". {other.name} is clearly above on {all_names(above)}" if above else ""
    text += f". {other.name} is clearly below on {all_names(below)}" if below else ""
    names = [one.task for one in several if one.task != OVERALL]
    return f"{text} ({basis(found, [found.first, other.name], names)})."


def about_one(found: Comparison) -> str:
    scores = [
        f"{one.metric} {100 * one.mean(found.first):.1f} on {name}"
        for name, one in found.tasks.items()
    ]
    return f"{found.first}: {', '.join(scores)} ({basis(found, [found.first], [*found.tasks])})."


def basis(found: Comparison, systems: Sequence[str], names: Sequence[str]) -> str:
    """Return the numbers of seeds and of examples by task."""
    several = [seeds_of([one], found.tasks.values()) for one in systems]
    seeds = [
        counted(len(s), "seed") if len(s) > 1 else f"seed {s[0]}" if s else "no seed"
        for s in several
    ]
    counts = [f"{task} {len(found.tasks[task].ids):,}" for task in names]
    return f"{' and '.join(dict.fromkeys(seeds))}; dev examples: {', '.join(counts)}"


def warnings(found: Comparison) -> list[str]:
    """Return a line for dev examples that are left out, and for a run that predicts one class."""
    lines = [
        f"Left out: {one.left_out:,} of {one.left_out + len(one.ids):,} dev examples of {name}, "
        "which selected members of an ensemble."
        for name, one in found.tasks.items()
        if one.left_out
    ]
    return lines + [
        f"{system} with seed {seed} predicts the same class for every dev example of {name}: "
        f"{one.task.kind.names[int(predictions[0])]}."
        for name, one in found.tasks.items()
        if one.task.kind.classes is not None
        for (system, seed), predictions in one.predictions.items()
        if len(predictions) > 1 and np.all(predictions == predictions[0])
    ]
