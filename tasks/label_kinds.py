"""Types of tasks, inferred from the cells of a column of labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from tasks.own_types.classes import spelled_twice
from tasks.own_types.multi_label import SEPARATOR, USUAL, check_not_lists, parts_of
from tasks.readers import to_number

LEVELS = range(3, 21)  # different whole numbers that are taken for classes
MARKED = 0.1  # smallest share of cells with a separator
REPEATED = 0.5  # smallest share of cells whose value another cell has, too
USES = 2  # smallest mean number of uses of a label in cells with several
DATES = ",/"  # between numbers, these are parts of a number or a date
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


class Inferred(NamedTuple):
    """An inferred type, further keys of the task's description, and the reason."""

    type: str
    options: dict[str, str]
    reason: str


def infer_kind(cells: Mapping[str, int], texts: int) -> Inferred:
    """Return the type of a column, given how often each of its cells occurs, without blank cells.

    `texts` is the number of texts of an example. Raise ValueError for a column that cannot be
    learnt.
    """
    if len(cells) < 2:
        found = next((repr(short(cell)) for cell in cells), "none")
        raise ValueError(f"expected two different labels or more, found {found}")
    check_not_lists(cells)
    numbers = {to_number(cell) for cell in cells}
    if None not in numbers:
        return of_numbers({one for one in numbers if one is not None}, cells, texts)
    if all(to_number(cell) is not None or DECIMAL_COMMA.fullmatch(cell) for cell in cells):
        found = next(cell for cell in cells if "," in cell)
        line = "expected a point in decimal numbers, and no mark between thousands"
        raise ValueError(
            f"{line}, found {found!r}; or name its type, and separator of several labels"
        )
    if separator := separator_of({cell: n for cell, n in cells.items() if not is_missing(cell)}):
        if separator == "/" and (found := next(filter(is_missing, cells), "")):
            line = f"expected labels with '/' between them, found {found!r}"
            raise ValueError(f"{line}; leave such cells blank, or name the type")
        labels = {label for cell in cells for label in parts_of(cell, separator)}
        reason = f"{len(labels)} labels, several in a cell, separated by {separator!r}"
        return Inferred("multi-label", {"separator": separator}, reason)
    if len(cells) == 2:
        return Inferred("classification", {}, "two different values")
    check_repeated(cells)
    return Inferred("classification", {}, f"{len(cells)} different values with words")


def infer_kind_of_lists(cells: Mapping[str, int]) -> Inferred:
    """Return the type of a column of lists, whose cells have `SEPARATOR` between the labels.

    Raise ValueError if hardly any label recurs, as in a column of numbers such as embeddings.
    """
    labels: Counter[str] = Counter()
    for cell, times in cells.items():
        for label in parts_of(cell, SEPARATOR):
            labels[label] += times
    check_repeated(labels)
    return Inferred("multi-label", {}, f"lists with {len(labels)} different labels")


def of_numbers(numbers: set[float], cells: Mapping[str, int], texts: int) -> Inferred:
    """Return the type of a column of numbers."""
    whole = all(number.is_integer() for number in numbers)
    if len(numbers) == 2 or (whole and len(numbers) in LEVELS):
        if twice := spelled_twice(cells):
            line = f"expected one spelling of a number, found {twice}"
            raise ValueError(f"{line}; type=classification takes them for different classes")
        what = "two different" if len(numbers) == 2 else f"{len(numbers)} different whole"
        return Inferred("classification", {}, f"{what} numbers")
    if whole:
        check_repeated(cells)
    shown = f"{len(numbers)} different numbers from {min(numbers):g} to {max(numbers):g}"
    return Inferred("similarity" if texts == 2 else "regression", {}, shown)


def check_repeated(cells: Mapping[str, int]) -> None:
    """Raise ValueError if hardly any value occurs twice."""
    total = sum(cells.values())
    once = sum(count == 1 for count in cells.values())
    if total - once < REPEATED * total:
        example = short(max(cells, key=len))
        raise ValueError(
            f"expected labels that recur, found free text or ids: {once:,} of {total:,} values "
            f"occur once, such as {example!r}; leave the column out, or name its type"
        )


def separator_of(cells: Mapping[str, int]) -> str | None:
    """Return the mark that separates several labels in many cells; None without one.

    The labels of such cells must recur: on average twice, and half of them in different cells, as
    the words of free text and of class names such as 'bed, bath' do not.
    """
    total = sum(cells.values())
    found: dict[str, int] = {}
    for mark in USUAL:
        marked = [cell for cell in cells if mark in cell]
        count = sum(cells[cell] for cell in marked)
        if count < MARKED * total:
            continue
        uses: Counter[str] = Counter()
        places: Counter[str] = Counter()
        for cell, times in cells.items():
            for label in set(parts_of(cell, mark)):
                uses[label] += times
                places[label] += 1
        several = {label for cell in marked for label in parts_of(cell, mark)}
        if mark in DATES and all(to_number(label) is not None for label in several):
            continue
        shared = sum(places[label] > 1 for label in several)
        if (
            len(several) > 1
            and sum(uses.values()) >= USES * len(uses)
            and 2 * shared >= len(several)
        ):
            found[mark] = count
    return max(found, key=lambda mark: found[mark]) if found else None


def is_missing(cell: str) -> bool:
    """Return whether a cell says that a value is not available."""
    return cell.lower() == "n/a"


def short(cell: str) -> str:
    """Return the beginning of a long cell."""
    return cell if len(cell) <= 40 else f"{cell[:37]}..."
