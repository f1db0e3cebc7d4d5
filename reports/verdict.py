"""The result of a comparison in one sentence per system."""

from __future__ import annotations

from collections.abc import Sequence

from common.errors import escape_unsafe
from common.text import all_names
from reports.comparison import Comparison, Difference
from reports.figures import seeds_text
from reports.scored_systems import ScoredSystem
from tasks.metrics import OVERALL

SMALLEST = 0.05  # points: a smaller difference is printed as 0.0


def verdicts(comparison: Comparison) -> list[str]:
    """Return one line per system but the first; one about the system if there is no other.

    A difference is clear if its 95 % interval over examples and seeds excludes 0.
    """
    return [escape_unsafe(text) for text in sentences(comparison)]


def sentences(comparison: Comparison) -> list[str]:
    first = comparison.first
    if len(comparison.systems) == 1:
        return [f"{first.system.name}: one system, nothing to compare; {basis([first])}."]
    found = []
    for other in comparison.systems[1:]:
        differences = comparison.of(other)
        names = f"{other.system.name} and {first.system.name}"
        if not differences:
            found.append(f"{names} have no task in common.")
            continue
        tasks = [one for one in differences if one.task != OVERALL]
        if tasks == differences and len(tasks) > 1:  # no overall score
            name, reference = other.system.name, first.system.name
            clause = f"{name} compared with {reference}: {by_task(tasks)}"
        else:
            clause = opening(differences[0], other, first)
            if tasks != differences:  # otherwise the only task is named
                clause += f"; {by_task(tasks)}"
        found.append(f"{clause}; {basis([first, other], [one.task for one in tasks])}.")
    return found


def opening(one: Difference, other: ScoredSystem, first: ScoredSystem) -> str:
    """Return the main clause: the overall difference, or that of the only task."""
    points = 100 * one.difference
    place = OVERALL if one.task == OVERALL else f"on {one.task}"
    if abs(points) < SMALLEST:
        return f"{other.system.name} scores as {first.system.name} does {place}"
    side = "above" if points > 0 else "below"
    plural = "point" if f"{abs(points):.1f}" == "1.0" else "points"
    doubt = "" if one.clear else ", not clearly"
    name = first.system.name
    return f"{other.system.name} is {abs(points):.1f} {plural} {side} {name} {place}{doubt}"


def by_task(differences: Sequence[Difference]) -> str:
    """Return a clause about the tasks on which the systems differ clearly, and the others."""
    ahead = [one.task for one in differences if one.clear and one.difference > 0]
    behind = [one.task for one in differences if one.clear and one.difference < 0]
    level = [one.task for one in differences if not one.clear]
    if not level and not (ahead and behind):
        return "the difference is clear on " + all_names(ahead or behind)
    parts = [f"clearly above on {all_names(ahead)}"] if ahead else []
    parts += [f"clearly below on {all_names(behind)}"] if behind else []
    parts += [f"no clear difference on {all_names(level)}"] if level else []
    return ", ".join(parts)


def basis(systems: Sequence[ScoredSystem], tasks: Sequence[str] | None = None) -> str:
    """Return the numbers of seeds and of examples by task."""
    first, names = systems[0], tasks or systems[0].system.tasks
    seeds = [seeds_text(one.real_seeds(*names)) or "no seed" for one in systems]
    shown = seeds[0] if len(set(seeds)) == 1 else " and ".join(seeds)
    counts = [f"{first.dev_examples(task):,} ({task})" for task in names]
    return f"{shown}; n = {', '.join(counts)}"
