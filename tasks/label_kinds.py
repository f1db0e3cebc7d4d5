"""The type of a task, inferred from the cells of its column of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from common.settings import short
from tasks.own_types import SEPARATOR, check_no_lists, parts_of
from tasks.readers import to_number

MOST_LEVELS = 20  # different whole numbers that are taken for classes
MARKS = ",;|"  # between several labels in a cell
MARKED = 0.1  # smallest share of cells with such a mark
REPEATED = 0.5  # smallest share of cells whose value another cell has, too


def infer_type(cells: Mapping[str, int], texts: int, lists: bool = False) -> dict[str, str]:
    """Return the keys `type` and perhaps `separator` of a task with this column of labels.

    `cells` says how often each cell occurs, without blank ones; `lists` are joined by `SEPARATOR`.
    `texts` is the number of texts of an example. Raise ValueError for a column of free text.
    """
    if lists:
        labels: Counter[str] = Counter()
        for cell, times in cells.items():
            labels.update(dict.fromkeys(parts_of(cell, SEPARATOR), times))
        check_recurring(labels)
        return {"type": "multi-label"}
    numbers = {to_number(cell) for cell in cells}
    if None not in numbers:
        whole = all(number is not None and number.is_integer() for number in numbers)
        if len(numbers) <= 2 or (whole and len(numbers) <= MOST_LEVELS):
            return {"type": "classification"}
        if whole:
            check_recurring(cells)
        return {"type": "similarity" if texts == 2 else "regression"}
    if all(to_number(cell.replace(",", "")) is not None for cell in cells):
        found = next(cell for cell in cells if "," in cell)
        line = "expected a point in decimal numbers, and no mark between thousands"
        raise ValueError(f"{line}, found {found!r}; or name type and separator")
    check_no_lists([*cells])
    if separator := separator_of(cells):
        return {"type": "multi-label", "separator": separator}
    if len(cells) > 2:
        check_recurring(cells)
    return {"type": "classification"}


def check_recurring(cells: Mapping[str, int]) -> None:
    """Raise ValueError if hardly any value occurs twice."""
    total, once = sum(cells.values()), sum(count == 1 for count in cells.values())
    if total - once < REPEATED * total:
        raise ValueError(
            f"expected labels that recur, found free text or ids: {once:,} of {total:,} values "
            f"occur once, such as {short(max(cells, key=len))}; leave the column out, or name type"
        )


def separator_of(cells: Mapping[str, int]) -> str | None:
    """Return the mark that separates several labels in many cells; None without one.

    The labels must recur: on average twice, and half of those in such cells in different cells, as
    the words of free text and of class names such as 'bed, bath' do not.
    """
    marked = {mark: sum(n for cell, n in cells.items() if mark in cell) for mark in MARKS}
    for mark in sorted(MARKS, key=lambda one: -marked[one]):
        uses: Counter[str] = Counter()
        places: Counter[str] = Counter()
        for cell, times in cells.items():
            for label in set(parts_of(cell, mark)):
                uses[label] += times
                places[label] += 1
        several = {label for cell in cells if mark in cell for label in parts_of(cell, mark)}
        recur = 2 * sum(places[label] > 1 for label in several) >= len(several) > 1
        if marked[mark] >= MARKED * sum(cells.values()) and recur and uses.total() >= 2 * len(uses):
            return mark
    return None
