"""Own tasks with any number of labels per example."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from common.errors import SettingsError, is_unsafe
from common.settings import short
from common.text import first_names
from tasks.own_types.base import (
    MISSING_REPRS,
    DescriptionError,
    LabelsByLine,
    OwnType,
    Parts,
    TaskDescription,
    check_labels,
    columns,
)
from tasks.own_types.classes import MOST_CLASSES, alike, distinct_labels, head, sorted_labels
from tasks.predictions import PredictionFile
from tasks.readers import UnknownLabelError
from tasks.text_files import DataError

SEPARATOR = "|"
USUAL = ",;|/"  # separators
CHECKED = 1000  # cells that are checked for lists
INDICATORS = {
    **dict.fromkeys(("", "0", "0.0", "no", "false"), 0.0),
    **dict.fromkeys(("1", "1.0", "yes", "true"), 1.0),
}

MARKS = {"0", "1", "0.0", "1.0", "False", "True", *MISSING_REPRS}  # elements of a matrix, by `repr`


def parts_of(cell: str, separator: str) -> Iterator[str]:
    """Yield the labels in a cell, without empty ones."""
    yield from filter(None, map(str.strip, cell.split(separator)))


def check_not_lists(cells: Iterable[str]) -> None:
    """Raise ValueError if most cells are lists as a program prints them, such as ['a', 'b']."""
    several = list(cells)
    lists = [cell for cell in several if is_list(cell)]
    if 2 * len(lists) > len(several):
        line = f"expected labels, found lists as text, such as {max(lists, key=len)[:40]!r}"
        cure = "save the table as JSON Lines or Parquet, or write labels with a mark between them"
        raise ValueError(f"{line}; {cure}")


def is_list(cell: str) -> bool:
    """Return whether a cell is a list of texts as Python or JSON prints it."""
    if not (cell.startswith("[") and cell.endswith("]")):
        return False
    try:
        found = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return isinstance(found, list) and all(isinstance(one, str) for one in found)


def complete(
    name: str, description: Mapping[str, Any], file: str, found: LabelsByLine
) -> dict[str, Any]:
    """Return the given labels, or those of the file in the order of `sorted_labels`.

    Of several columns, each is a label with the name of the column.
    """
    separator = description.get("separator") or SEPARATOR
    if " , " in separator or any(is_unsafe(letter) for letter in separator):
        expected = "separator: expected a text without ' , ' and line breaks"
        raise DescriptionError(f"{name}: {expected}, found {separator!r}")
    labels = tuple(description["labels"])
    if len(description["label"]) > 1:
        if labels:
            raise DescriptionError(f"{name}: labels: expected none beside several label columns")
        labels = tuple(description["label"])
    elif not labels:
        rows = iter(found)
        first = list(islice(rows, CHECKED))
        try:
            check_not_lists(cell for _, cell in first)
        except ValueError as error:
            raise DataError(f"{file}: {name}: {error}") from error
        cells = chain(first, rows)
        parts = ((line, label) for line, cell in cells for label in parts_of(cell, separator))
        labels = sorted_labels(distinct_labels(name, file, parts, "labels"))
    check_labels(name, labels)
    for label in labels:
        if separator in label:
            line = f"labels: expected labels without {separator!r}, found {label!r}"
            raise DescriptionError(f"{name}: {line}; separator= names another")
    return {
        "labels": labels,
        "separator": separator,
        "blank": description.get("blank") or "none",
    }


def fault(described: TaskDescription) -> str | None:
    if len(set(described.labels)) < 2:
        return f"labels: expected two or more, found {first_names(described.labels) or 'none'}"
    for key in ("separator", "blank"):
        if not getattr(described, key):
            return f"{key}: expected a text, found none"
    return None


def lines(described: TaskDescription) -> Iterator[str]:
    """Yield the columns and the labels, and a notice if another separator seems to be in use."""
    labels, separator = described.labels, described.separator
    where = f"in column {described.label!r}, separated by {separator!r}"
    if described.label is None:
        where = "in a column each"
    count = f"{len(labels)} labels {where}"
    yield f"multi-label classification of {columns(described)}, {count}: {first_names(labels, 10)}"
    yield from alike(labels)
    if described.label is None:
        return
    for mark in USUAL:
        if with_mark := [label for label in labels if mark in label]:
            written = "\\," if mark == "," else mark  # as in a description on the command line
            yield f"labels contain {mark!r}, such as {with_mark[0]!r}; separator={written} splits"


def label_set(names: Sequence[str], separator: str) -> Callable[[str], tuple[float, ...]]:
    """Return a parser of a cell to 1 for each label in it and 0 for the others."""
    place = {name: number for number, name in enumerate(names)}

    def parse(cell: str) -> tuple[float, ...]:
        found = [0.0] * len(place)
        for label in parts_of(cell, separator):
            if label not in place:
                raise UnknownLabelError(names, label)
            found[place[label]] = 1.0
        return tuple(found)

    return parse


def indicator(cell: str) -> float:
    """Parse a cell of a label's own column; a blank one means 0."""
    if cell.lower() not in INDICATORS:
        raise ValueError("expected 0 or 1, no or yes, false or true")
    return INDICATORS[cell.lower()]


def build(described: TaskDescription) -> Parts:
    """Return BEES' heads of classes, a sigmoid per label; targets and predictions are (n, C)."""
    from tasks.kinds import multi_label

    labels, separator = described.labels, described.separator or SEPARATOR
    parse = label_set(labels, separator)
    return Parts(
        kind=multi_label(len(labels), labels),
        build_head=head(described, len(labels)),
        output=PredictionFile(
            described.name,
            "Predicted_Labels",
            show=lambda values: separator.join(
                label for label, value in zip(labels, values, strict=True) if value
            ),
            parse=parse,
        ),
        parse_label=parse if described.label else indicator,
        target_type=np.float32,
        blank=("",) if described.blank == "unknown" else (),
        indicators=() if described.label else labels,
    )


def joined_cell(label: Any, options: Mapping[str, Any]) -> str | int | float:
    """Return a list of labels as a cell, or a cell as it is; raise SettingsError for others."""
    if isinstance(label, str | int | float):
        return label
    separator = options.get("separator") or SEPARATOR
    if not isinstance(label, list | tuple) or not all(
        isinstance(one, str | int | float) for one in label
    ):
        raise SettingsError(f"labels: expected lists of texts or numbers, found {short(label)}")
    for one in map(str, label):
        if str(separator) in one:
            line = f"expected labels without {separator!r}, found {one!r}"
            raise SettingsError(f"labels: {line}; separator= names another")
    return str(separator).join(map(str, label))


def check_no_matrix(labels: Sequence[Any]) -> None:
    """Raise SettingsError for a matrix of 0 and 1, or truth values, with a column for each label.

    Its elements would be taken for the names of labels.
    """
    rows = [label for label in labels if isinstance(label, list | tuple)]
    widths = {len(row) for row in rows}
    marks = {repr(one) for row in rows for one in row}
    if len(widths) == 1 and not widths & {0, 1} and marks <= MARKS:
        expected = "expected lists of the labels that a text has, such as ['noise', 'heating']"
        found = f"found a matrix with rows such as {short(rows[0])}"
        names = "[[name for name, mark in zip(NAMES, row) if mark] for row in MATRIX]"
        advice = f"use {names}, or texts if 0 and 1 are names"
        raise SettingsError(f"labels: {expected}, {found}: {advice}")


MULTI_LABEL = OwnType(
    predicts="labels",
    main_metric="micro_f1",
    texts=(1, 2),
    keys=("labels", "separator", "blank"),
    complete=complete,
    fault=fault,
    lines=lines,
    build=build,
    label_columns=MOST_CLASSES,
    separator=SEPARATOR,
    cell=joined_cell,
)
