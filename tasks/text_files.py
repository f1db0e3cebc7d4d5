"""Readers of text, CSV, TSV and JSONL files of any size: lines, rows by column name, sentences."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from common.atomic_files import check_regular
from common.errors import UserError


class DataError(UserError):
    """An invalid data file."""


# The csv module's limit of 131,072 characters is too small for long texts. Without a limit, an open
# quote would include the rest of a file of any size.
csv.field_size_limit(1 << 24)
JSON_LINES = (".json", ".jsonl")
Lines = Iterator[tuple[int, str]]  # line number from 1, text with the line break


def read_sentences(path: Path, column: str | None = None) -> Iterator[str]:
    """Return the sentences of a file in order, without holding the file in memory.

    In `.csv`, `.tsv`, `.jsonl`, `.json` and `.parquet` files, these are the field `column` of each
    row. A CSV file is tab-separated if its header contains a tab. In any other file, these are the
    lines, including blank ones. Raises DataError with file and line for invalid data.
    """
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
    """Yield the lines of a UTF-8 file, with or without a byte-order mark."""
    check_regular(path, DataError)  # a pipe cannot be read twice
    try:
        with path.open("rb") as file:
            yield from decoded(file, str(path))
    except FileNotFoundError as error:
        place = path if path.parent.is_dir() else path.parent
        raise DataError(f"{path}: expected a data file, found no {place}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def decoded(lines: Iterable[bytes], name: str) -> Lines:
    """Yield lines of UTF-8 text, with or without a byte-order mark; errors contain `name`."""
    for number, line in enumerate(lines, 1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            found = f"found byte 0x{line[error.start]:02x}"
            raise DataError(f"{name}, line {number}: expected UTF-8 text, {found}") from error


def rows_by_name(
    path: Path,
    needed: Sequence[str],
    comma: bool = False,
    quoted_tabs: bool = True,
    names: Sequence[str] | None = None,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, fields by name) of each row; the order of the columns does not matter.

    Fields are separated by tabs or, with `comma`, by commas if the header contains no tab. Fields
    may be quoted, between tabs only with `quoted_tabs`. `names` are the columns of a file without a
    header line. Files that end in .json or .jsonl have one object per line. Parquet files and
    folders of Arrow files have their own columns, and row numbers instead of line numbers.
    """
    if path.suffix.lower() in JSON_LINES:
        yield from json_rows(path, needed)
        return
    if is_arrow(path):
        from tasks.arrow_files import arrow_rows

        yield from arrow_rows(path, needed)
        return
    lines = csv_lines(path)
    first = next(lines, None)
    if first is None:
        raise DataError(f"{path}: expected a header line with {', '.join(needed)}, found none")
    comma = comma and (names is not None or "\t" not in first)
    kind = "comma-separated" if comma else "tab-separated"
    rows = chain([first], lines)
    if comma:
        reader = csv.reader(rows, strict=True)
    elif quoted_tabs:
        reader = csv.reader(rows, delimiter="\t", strict=True)
    else:
        reader = csv.reader(rows, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    begin = 1
    try:
        header = list(names) if names else next(reader)
        for name in needed:
            if header.count(name) != 1:
                found = "it twice" if name in header else ", ".join(filter(None, header)) or "none"
                raise DataError(f"{path}, line 1: expected a column {name!r}, found {found}")
        begin = reader.line_num + 1
        for fields in reader:
            if fields:  # a blank line is no row
                if len(fields) != len(header):
                    raise DataError(
                        f"{path}, line {begin}: expected {len(header)} {kind} fields, "
                        f"found {len(fields)}"
                    )
                yield begin, dict(zip(header, fields, strict=True))
            begin = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {begin}: expected {kind} fields, found: {error}") from error


def columns_of(path: Path, comma: bool, quoted_tabs: bool = True) -> list[str]:
    """Return the names of a file's columns; for JSON lines, the keys of the first object."""
    if path.suffix.lower() in JSON_LINES:
        first: Any = next(json_lines(path), (0, {}))[1]
        return list(first) if isinstance(first, dict) else []
    if is_arrow(path):
        from tasks.arrow_files import arrow_columns

        return arrow_columns(path)
    header = next(csv_lines(path), "")
    tabs = "\t" in header or not comma
    if tabs and not quoted_tabs:
        return header.rstrip("\r\n").split("\t")
    return next(csv.reader([header], delimiter="\t" if tabs else ","), [])


def is_arrow(path: Path) -> bool:
    """Return whether a path is a Parquet file or a folder, as saved by the library datasets."""
    return path.suffix.lower() == ".parquet" or path.is_dir()


def csv_lines(path: Path) -> Iterator[str]:
    """Yield lines as the csv module expects them, ended also by a lone carriage return."""
    for _, text in decoded_lines(path):
        if "\r" in text[:-2]:
            yield from io.StringIO(text, newline="")
        elif text:  # a file with only a byte-order mark is empty
            yield text


def csv_column(path: Path, column: str) -> Iterator[str]:
    """Return one column of a file with a header line."""
    return (row[column] for _, row in rows_by_name(path, [column], path.suffix.lower() == ".csv"))


def json_rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, these fields as text) of a file with one JSON object per line."""
    for number, row in json_lines(path):
        fields = {}
        for name in needed:
            value = plain(row[name]) if isinstance(row, dict) and name in row else None
            if not isinstance(value, str) or not encodable(value):
                found = type(row).__name__ if not isinstance(row, dict) else f"{value!r}"[:60]
                raise DataError(f"{path}, line {number}: expected text in {name!r}, found {found}")
            fields[name] = value
        yield number, fields


def plain(value: Any) -> Any:
    """Convert numbers, truth values and missing values to text, whole numbers without a point.

    A column of classes may have whole numbers in one file and decimal points in another.
    """
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value) if isinstance(value, int | float) else value


def json_field(path: Path, column: str) -> Iterator[str]:
    """Yield one field of a file with one JSON object per line."""
    for number, row in json_lines(path):
        value = row.get(column) if isinstance(row, dict) else None
        if not isinstance(value, str) or not encodable(value):
            found = type(row).__name__ if not isinstance(row, dict) else f"{value!r}"[:60]
            raise DataError(f"{path}, line {number}: expected text in {column!r}, found {found}")
        yield value


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, content) of each line that is not blank."""
    for number, text in decoded_lines(path):
        if text.strip():
            try:
                yield number, json.loads(text)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}, line {number}: expected JSON, found: {error}") from error


def encodable(text: str) -> bool:
    """Return whether text can be encoded as UTF-8; JSON allows half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


READERS: dict[str, Callable[[Path, str], Iterator[str]]] = {
    ".csv": csv_column,
    ".tsv": csv_column,
    ".jsonl": json_field,
    ".json": json_field,
    ".parquet": csv_column,
}


def is_there(file: Path) -> bool:
    """Return whether a file exists, or any file of a pattern."""
    return file.exists() or ("*" in file.name and any(file.parent.glob(file.name)))
