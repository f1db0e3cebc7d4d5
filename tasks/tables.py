"""Rows, columns and sentences of a data file in any of the known formats, by its ending.

Parquet files need the package datasets.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tasks.parquet import PARQUET, parquet_columns, parquet_lists, parquet_rows
from tasks.text_files import (
    DataError,
    check_columns,
    csv_lines,
    decoded_lines,
    json_field,
    json_lines,
    json_rows,
)

JSON_LINES = (".json", ".jsonl")
HEADER_LINES = 100  # at most, of a file with line breaks in the names of columns


def read_sentences(path: Path, column: str | None = None) -> Iterator[str]:
    """Return the sentences of a file in order, without holding the file in memory.

    With a `column`, these are its fields, as `rows_by_name` reads them. Without one, they are the
    lines, including blank ones; `.csv`, `.tsv`, `.jsonl`, `.json` and `.parquet` files need a
    column. Raises DataError with file and line for invalid data.
    """
    reader = READERS.get(path.suffix.lower())
    if column is not None:
        return (reader or table_column)(path, column)
    if reader is not None:
        expected = "expected the name of a column (--column, or --text-column with --text)"
        raise DataError(f"{path}: {expected}, found none")
    return (text.rstrip("\r\n") for _, text in decoded_lines(path))


def rows_by_name(
    path: Path,
    needed: Sequence[str],
    comma: bool | None = None,
    quoted_tabs: bool = True,
    names: Sequence[str] | None = None,
    lists: Mapping[str, str] | None = None,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, fields by name) of each row; the order of the columns does not matter.

    `has_commas` defines with `comma` what separates the fields. Fields may be quoted, between tabs
    only with `quoted_tabs`. `names` are the columns of a file without a
    header line. Files that end in .json or .jsonl have one object per line. Parquet files
    have row numbers instead of line numbers. In both, fields of the columns `lists` may be lists,
    which are joined by the separator of their column.
    """
    if path.suffix.lower() in JSON_LINES:
        yield from json_rows(path, needed, lists or {})
        return
    if path.suffix.lower() == PARQUET:
        yield from parquet_rows(path, needed, lists or {})
        return
    for line, header, fields in csv_rows(path, needed, comma, quoted_tabs, names):
        yield line, dict(zip(header, fields, strict=True))


def csv_rows(
    path: Path,
    needed: Sequence[str],
    comma: bool | None = None,
    quoted_tabs: bool = True,
    names: Sequence[str] | None = None,
) -> Iterator[tuple[int, Sequence[str], list[str]]]:
    """Yield (line number, all columns, fields) of each row of a file of comma or tabs.

    The arguments are those of `rows_by_name`.
    """
    lines = csv_lines(path)
    first = header_lines(lines)
    if not first:
        wanted = f" with {', '.join(needed)}" if needed else ""
        raise DataError(f"{path}: expected a header line{wanted}, found none")
    comma = has_commas(path, "".join(first), comma) if names is None else comma
    kind = "comma-separated" if comma else "tab-separated"
    rows = chain(first, lines)
    if comma:
        reader = csv.reader(rows, strict=True)
    elif quoted_tabs:
        reader = csv.reader(rows, delimiter="\t", strict=True)
    else:
        reader = csv.reader(rows, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    begin = 1
    try:
        header = list(names) if names else next(reader)
        hint = ""
        if len(header) == 1 and ";" in header[0]:
            hint = "; separate the columns with commas or tabs"
        elif len(header) == 1 and "," in header[0] and not comma:
            hint = "; tabs separate the columns of a .tsv file: rename a file with commas to .csv"
        check_columns(f"{path}, line 1", header, needed, hint)
        begin = reader.line_num + 1
        for fields in reader:
            if fields:  # a blank line is no row
                if len(fields) != len(header):
                    raise DataError(
                        f"{path}, line {begin}: expected {len(header)} {kind} fields, "
                        f"found {len(fields)}"
                    )
                yield begin, header, fields
            begin = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {begin}: expected {kind} fields, found: {error}") from error


def columns_of(path: Path, comma: bool | None = None, quoted_tabs: bool = True) -> list[str]:
    """Return the names of a file's columns; for JSON lines, the keys of the first object."""
    if path.suffix.lower() in JSON_LINES:
        first: Any = next(json_lines(path), (0, {}))[1]
        return list(first) if isinstance(first, dict) else []
    if path.suffix.lower() == PARQUET:
        return parquet_columns(path)
    header = header_lines(csv_lines(path))
    comma = has_commas(path, "".join(header), comma)
    if not comma and not quoted_tabs:
        return "".join(header[:1]).rstrip("\r\n").split("\t")
    return next(csv.reader(header, delimiter="," if comma else "\t"), [])


def has_columns(path: Path, names: Collection[str], quoted_tabs: bool = True) -> bool:
    """Return whether a file has these columns; JSON lines have them if any object has all keys."""
    if path.suffix.lower() in JSON_LINES:
        return any(isinstance(row, dict) and {*names} <= row.keys() for _, row in json_lines(path))
    return {*names} <= {*columns_of(path, quoted_tabs=quoted_tabs)}


def list_columns(path: Path, columns: Collection[str]) -> set[str]:
    """Return the columns of lists: by type, in JSON lines by their first value that is not null."""
    if path.suffix.lower() in JSON_LINES:
        first: dict[str, Any] = {}
        for _, row in json_lines(path):
            for column in {*columns} - first.keys():
                if isinstance(row, dict) and row.get(column) is not None:
                    first[column] = row[column]
            if first.keys() >= {*columns}:
                break
        return {column for column, value in first.items() if isinstance(value, list)}
    return parquet_lists(path) & {*columns} if path.suffix.lower() == PARQUET else set()


def header_lines(lines: Iterator[str]) -> list[str]:
    """Take the lines of the header from `lines`: several if a name in quotes contains line breaks.

    A quote that is not closed within `HEADER_LINES` lines does not make them a header.
    """
    found = list(islice(lines, 1))
    while "".join(found).count('"') % 2 and len(found) < HEADER_LINES:
        if (more := next(lines, None)) is None:
            break
        found.append(more)
    return found


def has_commas(path: Path, header: str, allowed: bool | None = None) -> bool:
    """Return whether commas separate the fields of a file with this header, or tabs.

    A header with a tab has tabs. `allowed` is known for the files of built-in tasks. A user's
    files, None, have commas if they end in .csv, or if the header has one, except in .tsv.
    """
    if allowed is None:
        ending = path.suffix.lower()
        allowed = ending == ".csv" or (ending != ".tsv" and "," in header)
    return allowed and "\t" not in header


def table_column(path: Path, column: str) -> Iterator[str]:
    """Return one column of a file with a header line."""
    return (row[column] for _, row in rows_by_name(path, [column]))


READERS: dict[str, Callable[[Path, str], Iterator[str]]] = {
    ".csv": table_column,
    ".tsv": table_column,
    ".jsonl": json_field,
    ".json": json_field,
    PARQUET: table_column,
}
