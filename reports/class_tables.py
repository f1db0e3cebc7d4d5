"""Tables of precision, recall and F1 of each class, or of each of several labels."""

from __future__ import annotations

from collections.abc import Mapping

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


def class_table(by_task: Mapping[str, ByClass]) -> Table:
    """Return header and rows of the classes of all tasks."""
    rows = []
    for task, found in by_task.items():
        title = task if len(found) <= MOST else f"{task}: the worst of {len(found):,}"
        rows += [[title, name, *figures_of(found[name])] for name in shown_classes(found)]
    return ["task", "class", *COLUMNS, "support"], rows


def figures_of(one: Mapping[str, float]) -> list[str]:
    """Format precision, recall, F1 and support."""
    return [*(f"{one[figure]:.4f}" for figure in COLUMNS), f"{one['support']:,.0f}"]
