"""Predictions for a file or for standard input, as a table with all columns of the input."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, TextIO

from common.errors import escape_unsafe
from serving.model import MultiTaskModel
from serving.prediction import EMPTY_TEXT, Prediction, rows_with
from tasks.csv_files import Layout
from tasks.own_tasks import TEXTS
from tasks.tables import DataError, decoded, lines_of, read_sentences, read_table, shown

Row = tuple[Sequence[str], Sequence[str]]  # its one or two texts, and all its fields


def read_rows(
    file: Path | None, columns: Sequence[str], layout: Layout
) -> tuple[Sequence[str], list[Row]]:
    """Return the names of the fields, and the rows, of a file, or of standard input for None.

    The texts are in `columns`; without any, each line is one text.
    """
    if file and columns:
        table = read_table(file, layout)
        rows: list[Row] = []
        table.check([*columns, *table.columns])
        for (_, row), (_, own) in zip(table.rows, table.fields(columns), strict=True):
            fields = [own[name] if name in own else shown(row.get(name)) for name in table.columns]
            rows.append(([own[name] for name in columns], fields))
        return table.columns, rows
    if file:
        return TEXTS[:1], [([text], [text]) for text in read_sentences(file, layout=layout)]
    found = [*standard_input(layout.encoding or "utf-8")]
    return TEXTS[: len(found[0])] if found else TEXTS, [(texts, texts) for texts in found]


def standard_input(encoding: str) -> Iterator[list[str]]:
    """Yield one text per line, or two with a tab between them."""
    if sys.stdin is None:
        raise DataError("standard input is closed; give texts to it, or a file with --input")
    width = None
    content = decoded(sys.stdin.buffer.read(), "standard input", encoding)
    for number, line in enumerate(lines_of(content), 1):
        texts = line.split("\t")
        width = width or min(len(texts), len(TEXTS))
        if len(texts) != width:
            expected = f"{width} as in line 1" if number > 1 else "one text, or two with a tab"
            line = f"expected {expected}, found {len(texts)}"
            raise DataError(f"standard input, line {number}: {line}")
        yield texts


def predict_rows(
    model: MultiTaskModel,
    header: Sequence[str],
    rows: Sequence[Row],
    tasks: Sequence[str] | None,
    precision: str,
    probabilities: bool,
    file: TextIO,
    separator: str = "\t",
    *,
    reasons: bool = True,
) -> None:
    """Write each row with its predictions to a file, which has a header if there are rows.

    With `probabilities`, each class has a column. With `reasons`, the last column says why a
    prediction is missing, or is one from a part of a text. Warn of empty and of cut texts as
    `MultiTaskModel.predict` does.
    """
    if not rows:
        return
    texts = [tuple(texts) for texts, _ in rows]
    found = model.predict(texts, tasks, precision, progress=file is not sys.stdout)
    empty, cut = (rows_with(mark, found.values()) for mark in ("empty", "cut"))
    new = new_columns(found, probabilities) + ["reason"] * reasons
    lines: list[Sequence[Any]] = [with_new_columns(header, new)]
    for place, (_, fields) in enumerate(rows):
        line = [*fields, *predicted_fields(found, place, probabilities)]
        if reasons:
            words = {EMPTY_TEXT: empty[place], "cut": cut[place]}
            line.append("; ".join(word for word, marked in words.items() if marked))
        lines.append(line)
    if file.isatty():
        lines = [[escape_unsafe(str(field)) for field in line] for line in lines]
    csv.writer(file, delimiter=separator, lineterminator="\n").writerows(lines)


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
        others = (f"{name} (predicted {number})" for number in count(2))
        several = chain([name, f"{name} (predicted)"], others)
        found.append(next(one for one in several if one not in found))
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
