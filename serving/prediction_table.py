"""The table of predictions: all fields of each row, its predictions, and what they lack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from common.csv_rows import row_writer
from common.errors import escape_unsafe
from serving.empty_texts import REASON as EMPTY_TEXT
from serving.prediction import Prediction
from serving.row_file import Row

REASON = "reason"  # the column of what a row lacks
CUT = "cut"


@dataclass(frozen=True)
class PredictionOptions:
    """Options of the output; `tasks` are those to predict, by default all that fit the texts.

    With `glue`, the output is a submission file for GLUE's leaderboard.
    """

    tasks: Sequence[str] | None = None
    glue: bool = False
    probabilities: bool = False
    separator: str = "\t"


class PredictionTable:
    """Writer of windows of rows to a file; the first window is preceded by the header.

    With `reasons`, the last column says what the predictions of a row lack.
    """

    def __init__(self, file: TextIO, separator: str, probabilities: bool, reasons: bool) -> None:
        self.file, self.probabilities, self.reasons = file, probabilities, reasons
        self.writer = row_writer(file, separator)
        self.begun = False

    def write(self, window: Sequence[Row], found: Mapping[str, Prediction]) -> None:
        """Write the rows of a window with their predictions by task."""
        if not self.begun:
            new = columns(found, self.probabilities) + [REASON] * self.reasons
            self.write_rows([with_new_columns(window[0].header, new)])
            self.begun = True
        reasons = [[one] for one in reasons_of(found)] if self.reasons else [[]] * len(window)
        self.write_rows(
            [*row.fields, *prediction_fields(found, place, self.probabilities), *reasons[place]]
            for place, row in enumerate(window)
        )

    def write_rows(self, rows: Iterable[Sequence[object]]) -> None:
        """Write rows of fields, with control characters escaped if the file is a terminal."""
        if self.file.isatty():
            rows = ([escape_unsafe(str(field)) for field in row] for row in rows)
        self.writer.writerows(rows)


def columns(found: Mapping[str, Prediction], probabilities: bool) -> list[str]:
    """Return the column names: `sst`, and `sst: positive` for a probability."""
    names = []
    for task, one in found.items():
        names.append(task)
        if probabilities:
            names += [f"{task}: {name}" for name in one.class_names]
    return names


def with_new_columns(header: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the names of the input's columns and of new ones.

    A new one that has the name of another becomes `NAME (predicted)`, then `NAME (predicted 2)`.
    """
    found = list(header)
    for name in new:
        free, number = name, 1
        while free in found:
            free = f"{name} (predicted{f' {number}' if number > 1 else ''})"
            number += 1
        found.append(free)
    return found


def prediction_fields(
    found: Mapping[str, Prediction], place: int, probabilities: bool
) -> list[Any]:
    """Return the predictions of one row, empty fields for an empty text."""
    values: list[Any] = []
    for one in found.values():
        values.append(one.labels[place])
        if probabilities and one.probabilities is not None:
            shares = one.probabilities[place]
            values += ["" if one.empty[place] else f"{value:.6f}" for value in shares]
    return values


def reasons_of(found: Mapping[str, Prediction]) -> list[str]:
    """Return for each row why a prediction is missing, or is one from a part of a text."""
    several = list(found.values())
    marks = {
        EMPTY_TEXT: np.any([one.empty for one in several], axis=0),
        CUT: np.any([one.cut for one in several], axis=0),
    }
    reasons = np.full(len(several[0].labels), "", object)
    for word, mark in marks.items():
        reasons[mark] = [f"{before}; {word}" if before else word for before in reasons[mark]]
    return list(reasons)
