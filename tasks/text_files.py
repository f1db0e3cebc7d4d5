"""Text, CSV, TSV and JSONL files of any size: lines, rows by column name, sentences."""

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
    """A data file that cannot be used."""


# The library's own limit of 131,072 characters is less than a long text; without any, an open quote
# would take in the rest of a file of any size.
csv.field_size_limit(1 << 24)
JSON_LINES = (".json", ".jsonl")
Lines = Iterator[tuple[int, str]]  # line number from 1, its text with the line break


def read_sentences(path: Path, column: str | None = None) -> Iterator[str]:
    """The sentences of a file in its order, without holding the file in memory.

    `.csv`, `.tsv` and `.jsonl` give the field `column` of each row, a CSV file being tab-separated
    if its header holds a tab; any other file gives its lines, blank ones included.

    Raises DataError with file and line for what cannot be read.
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
    """Lines of UTF-8 text, with or without a byte-order mark."""
    check_regular(path, DataError)  # a pipe could not be read twice either
    try:
        with path.open("rb") as file:
            yield from decoded(file, str(path))
    except FileNotFoundError as error:
        place = path if path.parent.is_dir() else path.parent
        raise DataError(f"{path}: expected a data file, found no {place}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def decoded(lines: Iterable[bytes], name: str) -> Lines:
    """Lines of UTF-8 text, with or without a byte-order mark, of what is told as `name`."""
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
    """(line number, fields by name) of each row; the columns' order does not matter.

    Fields are separated by tabs or, with `comma`, by commas if the header holds no tab. They may
    be quoted; between tabs not, unless `quoted_tabs`. `names` are those of the columns of a file
    without a header line. A file that ends in .json or .jsonl has an object a line; Parquet files
    and folders of Arrow files have columns of their own, and rows in the place of lines.
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
    """Names of a file's columns; of one with a JSON object a line, of the first line's."""
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
    """Whether it is a Parquet file, or a folder that the library datasets saved."""
    return path.suffix.lower() == ".parquet" or path.is_dir()


def csv_lines(path: Path) -> Iterator[str]:
    """Lines as the csv module wants them: a carriage return alone ends one too."""
    for _, text in decoded_lines(path):
        if "\r" in text[:-2]:
            yield from io.StringIO(text, newline="")
        elif text:  # a byte-order mark alone is an empty file
            yield text


def csv_column(path: Path, column: str) -> Iterator[str]:
    """One column of a file with a header line."""
    return (row[column] for _, row in rows_by_name(path, [column], path.suffix.lower() == ".csv"))


def json_rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, these fields) of a file with a JSON object a line.

    Numbers become text.
    """
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
    """A number or truth value as text, nothing for a missing one, whole numbers without a point.

    A column of classes may come as whole numbers in one file and with a point in another.
    """
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value) if isinstance(value, int | float) else value


def json_field(path: Path, column: str) -> Iterator[str]:
    """One field of a file with a JSON object a line."""
    for number, row in json_lines(path):
        value = row.get(column) if isinstance(row, dict) else None
        if not isinstance(value, str) or not encodable(value):
            found = type(row).__name__ if not isinstance(row, dict) else f"{value!r}"[:60]
            raise DataError(f"{path}, line {number}: expected text in {column!r}, found {found}")
        yield value


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(line number, what stands there) for each line that is not blank."""
    for number, text in decoded_lines(path):
        if text.strip():
            try:
                yield number, json.loads(text)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}, line {number}: expected JSON, found: {error}") from error


def encodable(text: str) -> bool:
    """Whether text can be written as UTF-8; JSON lets half of a surrogate pair stand alone."""
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
    """Whether there is a file, or any of a pattern."""
    return file.exists() or ("*" in file.name and any(file.parent.glob(file.name)))
