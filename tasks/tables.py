"""Rows and columns of CSV, TSV, JSON Lines and Parquet files, by the ending of their names."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from common.errors import Notice
from common.files import check_regular
from tasks.text_files import DataError, decoded_lines, to_text

JSON_LINES, PARQUET = (".json", ".jsonl"), ".parquet"
TABLES = (".csv", ".tsv", *JSON_LINES, PARQUET)
Rows = Iterator[tuple[int, Sequence[str], Sequence[Any]]]  # line from 1, columns, values

# The csv module's limit of 131,072 characters is too small for long texts. Without a limit, an open
# quote would include the rest of a file of any size.
csv.field_size_limit(1 << 24)


def read_sentences(path: Path, column: str | None = None) -> Iterator[str]:
    """Return the texts in a column of a table, or without a `column` the lines of a text file.

    The file is not held in memory. Blank lines are sentences too.
    """
    if column is not None:
        return (row[column] for _, row in rows_by_name(path, [column]))
    if path.suffix.lower() in TABLES:
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
    """Yield (line number, fields of the `needed` columns as text) of each row.

    `has_commas` defines with `comma` what separates the fields of CSV and TSV files. These may be
    quoted, between tabs only with `quoted_tabs`. `names` are the columns of a file without a header
    line. Files that end in .json or .jsonl have one object per line; Parquet files have row numbers
    instead of line numbers. In both, fields of the columns `lists` may be lists, which are joined
    by the separator of their column. Raise DataError with file and line for a bad row.
    """
    lists = lists or {}
    for line, header, values in table_rows(path, needed, comma, quoted_tabs, names):
        row = dict(zip(header, values, strict=True))
        try:
            found = {name: field(name, row[name], lists.get(name)) for name in needed}
        except ValueError as error:
            raise DataError(f"{path}, line {line}: {error}") from error
        yield line, found


def whole_rows(
    path: Path, needed: Sequence[str], quoted_tabs: bool = True
) -> Iterator[tuple[Sequence[str], list[str]]]:
    """Yield the columns and all fields of each row; those of `needed` columns as `rows_by_name`.

    Other fields may have any type: lists and the like are written as JSON. The columns of JSON
    Lines are the keys of the first object; a Notice counts the rows with further keys.
    """
    header: Sequence[str] = ()
    total = further = 0
    for line, names, values in table_rows(path, needed, quoted_tabs=quoted_tabs):
        header, total = header or names, total + 1
        if names is not header and names != header:
            row = dict(zip(names, values, strict=True))
            values, further = (
                [row.get(name) for name in header],
                further + (not row.keys() <= {*header}),
            )
        try:
            fields = [
                field(name, value) if name in needed else shown(value)
                for name, value in zip(header, values, strict=True)
            ]
        except ValueError as error:
            raise DataError(f"{path}, line {line}: {error}") from error
        yield header, fields
    if further:
        found = f"{further:,} of {total:,} rows have fields that the first row lacks"
        warnings.warn(f"{found}; they are not in the output", Notice, stacklevel=2)


def columns_of(path: Path, comma: bool | None = None, quoted_tabs: bool = True) -> list[str]:
    """Return the names of a file's columns; for JSON Lines, the keys of the first object."""
    if path.suffix.lower() in JSON_LINES:
        return list(next(json_rows(path, ()), (0, (), ()))[1])
    if path.suffix.lower() == PARQUET:
        return list(parquet_table(path).features)
    try:
        return next(csv_reader(path, comma, quoted_tabs), [])
    except csv.Error as error:
        raise DataError(f"{path}, line 1: expected names of columns, found: {error}") from error


def has_columns(path: Path, names: Collection[str], quoted_tabs: bool = True) -> bool:
    """Return whether a file has these columns."""
    return {*names} <= {*columns_of(path, quoted_tabs=quoted_tabs)}


def list_columns(path: Path, columns: Collection[str]) -> set[str]:
    """Return those of the columns whose first value that is not null is a list."""
    first: dict[str, Any] = {}
    for _, header, values in table_rows(path, ()):
        for name, value in zip(header, values, strict=True):
            if name in columns and value is not None:
                first.setdefault(name, value)
        if first.keys() >= {*columns}:
            break
    return {name for name, value in first.items() if isinstance(value, list)}


def table_rows(
    path: Path,
    needed: Sequence[str],
    comma: bool | None = None,
    quoted_tabs: bool = True,
    names: Sequence[str] | None = None,
) -> Rows:
    """Return the rows of a file of any format; the arguments are those of `rows_by_name`."""
    if path.suffix.lower() in JSON_LINES:
        return json_rows(path, needed)
    if path.suffix.lower() == PARQUET:
        return parquet_rows(path, needed)
    return csv_rows(path, needed, comma, quoted_tabs, names)


def csv_rows(
    path: Path,
    needed: Sequence[str],
    comma: bool | None,
    quoted_tabs: bool,
    names: Sequence[str] | None,
) -> Rows:
    reader, begin = csv_reader(path, comma, quoted_tabs, names is None), 1
    kind = "comma-separated" if reader.dialect.delimiter == "," else "tab-separated"
    try:
        header = list(names) if names else next(reader)
        check_columns(f"{path}, line 1", header, needed)
        begin = reader.line_num + 1
        for fields in reader:
            if fields:  # a blank line is no row
                if len(fields) != len(header):
                    line = f"expected {len(header)} {kind} fields, found {len(fields)}"
                    raise DataError(f"{path}, line {begin}: {line}")
                yield begin, header, fields
            begin = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {begin}: expected {kind} fields, found: {error}") from error


def csv_reader(path: Path, comma: bool | None, quoted_tabs: bool, has_header: bool = True) -> Any:
    """Return a `csv.reader` of a file."""
    lines = csv_lines(path)
    first = next(lines, "")
    comma = has_commas(path, first, comma) if has_header else comma
    return csv.reader(
        chain([first], lines),
        delimiter="," if comma else "\t",
        quoting=csv.QUOTE_MINIMAL if comma or quoted_tabs else csv.QUOTE_NONE,
        strict=True,
    )


def csv_lines(path: Path) -> Iterator[str]:
    """Yield lines as the csv module expects them, ended also by a lone carriage return."""
    for _, text in decoded_lines(path):
        yield from io.StringIO(text, newline="") if "\r" in text[:-2] else [text]


def has_commas(path: Path, header: str, allowed: bool | None) -> bool:
    """Return whether commas separate the fields of a file with this header, or tabs.

    A header with a tab has tabs. `allowed` is known for the files of built-in tasks. A user's
    files, None, have commas if they end in .csv, or if the header has one, except in .tsv.
    """
    if allowed is None:
        ending = path.suffix.lower()
        allowed = ending == ".csv" or (ending != ".tsv" and "," in header)
    return allowed and "\t" not in header


def json_rows(path: Path, needed: Sequence[str]) -> Rows:
    for line, text in decoded_lines(path):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
            if "\\ud" in text.lower():  # half of a surrogate pair is no text
                row = json.loads(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {line}: expected JSON, found: {error}") from error
        if not isinstance(row, dict):
            found = f"expected a JSON object in each line, found {type(row).__name__}"
            raise DataError(f"{path}, line {line}: {found}")
        check_columns(f"{path}, line {line}", [*row], needed)
        yield line, [*row], [*row.values()]


def parquet_table(path: Path) -> Any:
    """Return a file as an `IterableDataset` of the library datasets."""
    from datasets import Dataset

    check_regular(path, DataError)
    try:
        return Dataset.from_parquet(str(path), streaming=True)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def parquet_rows(path: Path, needed: Sequence[str]) -> Rows:
    table = parquet_table(path)
    header = list(table.features)
    check_columns(str(path), header, needed)
    classes = [
        getattr(getattr(one, "feature", one), "names", None) for one in table.features.values()
    ]
    try:
        for number, row in enumerate(table, 1):
            values = zip(row.values(), classes, strict=True)
            yield number, header, [class_names(one, names) for one, names in values]
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def class_names(value: Any, names: Sequence[str] | None) -> Any:
    """Replace numbers of classes, also in a list, by `names`; another number, such as -1, by ''."""
    if names is None or value is None:
        return value
    if isinstance(value, list):
        return [class_names(one, names) for one in value]
    return names[value] if 0 <= value < len(names) else ""


def check_columns(where: str, header: Sequence[str], needed: Sequence[str]) -> None:
    """Raise DataError if a header lacks a needed column, or has it twice."""
    for name in needed:
        if header.count(name) != 1:
            found = "it twice" if name in header else ", ".join(filter(None, header)) or "none"
            raise DataError(f"{where}: expected a column {name!r}, found {found}")


def field(name: str, value: Any, separator: str | None = None) -> str:
    """Return a value as text, a list only with a separator; raise ValueError for other types."""
    if separator and isinstance(value, list):
        parts = [to_text(one) for one in value]
        for one in parts:
            if not isinstance(one, str) or not one or separator in one:
                raise ValueError(f"expected labels without {separator!r}, not blank, found {one!r}")
        return separator.join(parts)
    text = to_text(value)
    if not isinstance(text, str):
        raise ValueError(f"expected text or a number in {name!r}, found {value!r:.60}")
    return text


def shown(value: Any) -> str:
    """Return a value of any type as text: JSON, but for texts, missing values and dates."""
    if isinstance(value, bool | int | float | list | dict) and value == value:
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(to_text(value))
