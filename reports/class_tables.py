"""Tables of precision, recall and F1 of each class, or of each of several labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from reports.scored_systems import ScoredSystem, first_task, systems_with
from reports.tables import Table

ByClass = Mapping[str, Mapping[str, float]]  # precision, recall, f1 and support by class
COLUMNS = ("precision", "recall", "f1")
MOST, WORST = 12, 5  # classes of a table; classes that are shown if there are more


def shown_classes(found: ByClass) -> list[str]:
    """Return up to 12 classes in their order; of more, the five with examples and the worst F1."""
    if len(found) <= MOST:
        return list(found)
    having = [name for name, figures in found.items() if figures["support"]]
    return sorted(having, key=lambda name: found[name]["f1"])[:WORST]


def title_of(task: str, found: ByClass) -> str:
    """Return the task, with the number of its classes if not all are shown."""
    return task if len(found) <= MOST else f"{task}: the worst of {len(found):,}"


def class_table(by_task: Mapping[str, ByClass]) -> Table:
    """Return header and rows of the classes of all tasks."""
    rows = [
        [title_of(task, found), name, *figures_of(found[name])]
        for task, found in by_task.items()
        for name in shown_classes(found)
    ]
    return ["task", "class", *COLUMNS, "support"], rows


def figures_of(one: Mapping[str, float]) -> list[str]:
    """Format precision, recall, F1 and support."""
    return [*(f"{one[figure]:.4f}" for figure in COLUMNS), f"{one['support']:,.0f}"]


def mean_by_class(one: ScoredSystem, task: str) -> ByClass:
    """Return the figures of a task's classes, as means over the seeds of a system."""
    kind, several = one.system.task(task).kind, []
    for seed in one.seeds(task):
        targets = one.scores[task, seed].targets
        assert targets is not None, "scored systems have labels"
        several.append(kind.by_class(one.predictions(task, seed), targets))
    return {
        name: {key: fmean(found[name][key] for found in several) for key in figures}
        for name, figures in several[0].items()
    }


def class_tables(systems: Sequence[ScoredSystem], task: str) -> Table | None:
    """Return a table of a task's classes with a row for each system; None for a task of numbers.

    Of many classes it shows those with the worst F1 of the first system.
    """
    if first_task(systems, task).kind.columns is None:
        return None
    found = {one.system.name: mean_by_class(one, task) for one in systems_with(systems, task)}
    rows = [
        [name if len(found) == 1 else f"{name}, {system}", *figures_of(figures[name])]
        for name in shown_classes(next(iter(found.values())))
        for system, figures in found.items()
        if name in figures
    ]
    return ["class", *COLUMNS, "support"], rows
