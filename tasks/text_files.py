"""Sentences of a text, CSV, TSV or JSONL file of any size, one after the other."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from tasks.readers import DataError

Lines = Iterator[tuple[int, str]]  # line number from 1, its text with the line break


def read_sentences(path: Path, column: str | None = None) -> Iterator[str]:
    """The sentences of a file in its order, without holding the file in memory.

    `.csv`, `.tsv` and `.jsonl` give the field `column` of each row, a CSV file being tab-separated
    if its header holds a tab; any other file gives its lines, blank ones included.

    Raises DataError with file and line for what cannot be read.
    """
    if path.exists() and not path.is_file():  # a pipe could not be read twice
        raise DataError(f"{path}: expected a file, found none of the usual kind")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        if column is not None:
            endings = ", ".join(READERS)
            raise DataError(f"{path}: expected a file with columns ({endings}), found another")
        return (text.rstrip("\r\n") for _, text in decoded_lines(path))
    if column is None:
        raise DataError(f"{path}: expected the name of a column, found none given")
    return reader(path, column)


def decoded_lines(path: Path) -> Lines:
    """Lines of UTF-8 text, with or without a byte-order mark."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{path}, line {number}: expected UTF-8 text, "
                        f"found byte 0x{line[error.start]:02x}"
                    ) from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def csv_column(path: Path, column: str) -> Iterator[str]:
    """One column of a file with a header line."""
    lines = decoded_lines(path)
    _, first = next(lines, (1, ""))
    comma = path.suffix.lower() == ".csv" and "\t" not in first
    header = next(csv.reader([first], delimiter="," if comma else "\t"), [])
    if header.count(column) != 1:
        found = "it twice" if column in header else ", ".join(header) or "no header line"
        raise DataError(f"{path}, line 1: expected a column {column!r}, found {found}")
    place = header.index(column)
    reader = csv.reader((text for _, text in lines), delimiter="," if comma else "\t", strict=True)
    begin = 2
    try:
        for fields in reader:
            if fields:  # a blank line is no row
                if len(fields) != len(header):
                    raise DataError(
                        f"{path}, line {begin}: expected {len(header)} fields, found {len(fields)}"
                    )
                yield fields[place]
            begin = reader.line_num + 2
    except csv.Error as error:
        raise DataError(f"{path}, line {begin}: cannot be read: {error}") from error


def json_field(path: Path, column: str) -> Iterator[str]:
    """One field of a file with a JSON object a line."""
    for number, text in decoded_lines(path):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: expected JSON, found: {error}") from error
        value = row.get(column) if isinstance(row, dict) else None
        if not isinstance(value, str):
            found = type(row).__name__ if not isinstance(row, dict) else f"{value!r}"[:60]
            raise DataError(f"{path}, line {number}: expected text in {column!r}, found {found}")
        yield value


READERS: dict[str, Callable[[Path, str], Iterator[str]]] = {
    ".csv": csv_column,
    ".tsv": csv_column,
    ".jsonl": json_field,
}
