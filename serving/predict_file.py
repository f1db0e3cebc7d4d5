"""Predictions for a file or for standard input, as a table with all columns of the input."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from common.errors import escape_unsafe
from common.progress import bar
from minbert.bi_encoder import WINDOW
from minbert.sentences import windows
from minbert.tokenizer import warn_of_truncation
from serving.model import MultiTaskModel
from serving.prediction import EMPTY_TEXT, Prediction, rows_with, warn_of_empty_texts
from tasks.own_tasks import TEXTS
from tasks.tables import DataError, decoded, read_sentences, read_table


class Row(NamedTuple):
    """The one or two texts of a row, and all its fields with the names in `header`."""

    texts: Sequence[str]
    fields: Sequence[str]
    header: Sequence[str]

    @property
    def characters(self) -> int:
        """The number of characters of all fields."""
        return sum(map(len, self.fields))


def read_rows(file: Path | None, columns: Sequence[str], quoted_tabs: bool = True) -> Iterator[Row]:
    """Yield the rows of a file, or of standard input for None.

    The texts are in `columns`; without any, each line is one text.
    """
    if file is None:
        for texts in standard_input():
            yield Row(texts, texts, TEXTS[: len(texts)])
    elif columns:
        table = read_table(file, quoted_tabs)
        for fields in table.whole_rows(columns):
            texts = [fields[table.columns.index(name)] for name in columns]
            yield Row(texts, fields, table.columns)
    else:
        for text in read_sentences(file):
            yield Row([text], [text], TEXTS[:1])


def standard_input() -> Iterator[list[str]]:
    """Yield one text per line, or two with a tab between them."""
    if sys.stdin is None:
        raise DataError("standard input: expected one text per line, found it closed")
    width = None
    for number, line in decoded(sys.stdin.buffer, "standard input"):
        texts = line.rstrip("\r\n").split("\t")
        width = width or min(len(texts), len(TEXTS))
        if len(texts) != width:
            expected = f"{width} as before" if number > 1 else "one text, or two with a tab"
            line = f"expected {expected}, found {len(texts)}"
            raise DataError(f"standard input, line {number}: {line}")
        yield texts


def predict_rows(
    model: MultiTaskModel,
    rows: Iterable[Row],
    file: TextIO,
    *,
    separator: str = "\t",
    tasks: Sequence[str] | None = None,
    precision: str = "fp32",
    probabilities: bool = False,
    reasons: bool = True,
) -> int:
    """Write each row with its predictions to a file; return the number of rows.

    Only a window of a few thousand rows is in memory. With `probabilities`, each class has a
    column. With `reasons`, the last column says why a prediction is missing, or is one from a part
    of a text. Warn of empty and of cut texts as `MultiTaskModel.predict` does.
    """
    writer = csv.writer(file, delimiter=separator, lineterminator="\n")
    done, empty, cut = 0, 0, 0
    total = None if file is sys.stdout else 0  # the number of rows is unknown; no bar on stdout
    with bar("predict", "row", total) as progress:
        for window in windows(rows, WINDOW, lambda row: row.characters):
            columns = list(zip(*(row.texts for row in window), strict=True))
            names = model.chosen(tasks, len(columns))
            found = model.predict_window(columns, names, precision)
            marks = {mark: rows_with(mark, found.values()) for mark in ("empty", "cut")}
            lines: list[Sequence[Any]] = []
            if not done:
                header = new_columns(found, probabilities) + ["reason"] * reasons
                lines.append(with_new_columns(window[0].header, header))
            for place, row in enumerate(window):
                line = [*row.fields, *predicted_fields(found, place, probabilities)]
                if reasons:
                    words = {EMPTY_TEXT: marks["empty"][place], "cut": marks["cut"][place]}
                    line.append("; ".join(word for word, marked in words.items() if marked))
                lines.append(line)
            if file.isatty():
                lines = [[escape_unsafe(str(field)) for field in line] for line in lines]
            writer.writerows(lines)
            file.flush()
            done += len(window)
            empty, cut = empty + int(marks["empty"].sum()), cut + int(marks["cut"].sum())
            progress.update(len(window))
    warn_of_truncation(cut, done, "rows", model.model.bi_encoder.tokenizer.max_tokens)
    warn_of_empty_texts(empty, done)
    return done


def new_columns(found: Mapping[str, Prediction], probabilities: bool) -> list[str]:
    """Return the column names: `sst`, and `sst: positive` for a probability."""
    names = []
    for task, one in found.items():
        names.append(task)
        names += [f"{task}: {name}" for name in one.class_names if probabilities]
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


def predicted_fields(found: Mapping[str, Prediction], place: int, probabilities: bool) -> list[Any]:
    """Return the predictions of one row, empty fields for an empty text."""
    values: list[Any] = []
    for one in found.values():
        values.append(one.labels[place])
        if probabilities and one.probabilities is not None:
            shares = one.probabilities[place]
            values += ["" if one.empty[place] else f"{value:.6f}" for value in shares]
    return values
