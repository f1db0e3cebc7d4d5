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


def class_table(several: Mapping[str, ByClass], of: str = "task") -> Table:
    """Return header and rows of the classes of all tasks, or of what else their names are `of`."""
    rows = []
    for name, found in several.items():
        title = name if len(found) <= MOST else f"{name}: the worst of {len(found):,}"
        for label in shown_classes(found):
            figures = [f"{found[label][one]:.4f}" for one in COLUMNS]
            rows.append([title, label, *figures, f"{found[label]['support']:,.0f}"])
    return [of, "class", *COLUMNS, "support"], rows
