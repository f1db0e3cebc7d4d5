"""Prediction files of anybody's program, found in any folder and read with any usual layout."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reports.submissions.prediction_names import Header

AROUND = re.compile(r"tensor\(|,\s*(device|dtype|grad_fn)=.*")  # numbers printed by PyTorch
TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


@dataclass(frozen=True)
class Predictions:
    """A prediction file: n ids and values (n,), or (n, C) if each row has a list of C numbers.

    `split` is None if neither the file's name nor its folder has it. `broken` are the lines without
    an id and finite numbers and `unread` their ids, `repeated` the ids that occur again; none of
    them has values. `tensors` are the lines with values such as `tensor(2)`. With `no_header`, what
    is there in its place, nothing else was read.
    """

    file: Path
    task: str
    split: str | None
    ids: tuple[str, ...]
    values: np.ndarray
    broken: tuple[tuple[int, str], ...] = ()
    repeated: int = 0
    unread: tuple[str, ...] = ()
    tensors: tuple[tuple[int, str], ...] = ()
    no_header: str = ""

    @property
    def all_ids(self) -> tuple[str, ...]:
        """The ids, those with values first."""
        return (*self.ids, *self.unread)


def read_predictions(headers: Iterable[Header], wanted: Container[str]) -> list[Predictions]:
    """Read the prediction files of the tasks `wanted`; other files are left out."""
    return [read_rows(one, one.task) for one in headers if one.task and one.task in wanted]


def read_rows(header: Header, task: str) -> Predictions:
    """Read the rows below a header."""
    file, split = header.file, header.split
    if header.fault:
        return Predictions(file, task, split, (), np.empty(0), no_header=header.fault)
    lines = file.read_bytes().partition(b"\n")[2].decode("utf-8", "replace").splitlines()
    found: dict[str, tuple[float, ...]] = {}
    broken, tensors, without, repeated = [], [], [], 0
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        name, text = row_of(line, header)
        values = numbers_of(text)
        if not name or values is None:
            broken.append((number, line))
            without += [name] if name else []
        elif name in found:
            repeated += 1
        else:
            found[name] = values
            tensors += [(number, text)] if "tensor(" in text else []
    widths = [len(one) for one in found.values()]
    width = max(set(widths), key=widths.count, default=1)
    good = {name: one for name, one in found.items() if len(one) == width}
    odd = {name: len(one) for name, one in found.items() if name not in good}
    broken += [(0, f"{name}: {count} numbers") for name, count in odd.items()]
    table = np.array(list(good.values()), np.float64).reshape(len(good), width)
    table = table[:, 0] if width == 1 else table
    unread = tuple(name for name in dict.fromkeys([*without, *odd]) if name not in good)
    rows = tuple(broken), repeated, unread, tuple(tensors)
    return Predictions(file, task, split, tuple(good), table, *rows)


def row_of(line: str, header: Header) -> tuple[str, str]:
    """Return the id and the prediction of a row as text.

    A row is split at its first tab or, without one, its first comma, after an index column. Where
    the header has other columns, it is split into as many fields; of another number, the prediction
    is "".
    """
    text = line.replace('"', "")
    mark = "\t" if "\t" in text else ","
    if header.place is None:
        for _ in range(header.skipped):
            text = text.partition(mark)[2]
        name, _, value = text.partition(mark)
    else:
        fields = next(csv.reader([line], delimiter=mark))
        name, *_ = [*fields[header.skipped :], ""]
        value = fields[header.place] if len(fields) == header.columns else ""
    return " ".join(name.lower().split()), value.strip()


def numbers_of(text: str) -> tuple[float, ...] | None:
    """Return the number in a field or, of `[0, 1]` and `tensor([0.5])`, the numbers.

    Return None for other fields, and for numbers that are not finite.
    """
    if text.lower() in TRUTH:
        return (TRUTH[text.lower()],)
    inside = AROUND.sub("", text).strip("[]() ")
    try:
        numbers = tuple(float(one) for one in re.split(r"[\s,]+", inside))
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None
