"""Rows, columns and sentences of a data file in any of the known formats, by its ending.

Parquet files and folders saved by the library datasets need the package pyarrow.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import Any

from common.atomic_files import check_regular
from common.extras import missing
from tasks.text_files import (
    DataError,
    csv_lines,
    decoded_lines,
    encodable,
    joined_list,
    json_field,
    json_lines,
    json_rows,
    missing_as_empty,
    to_text,
)

JSON_LINES = (".json", ".jsonl")
NO_LISTS: Mapping[str, str] = {}
ROWS = 4096  # of a Parquet file in memory at a time
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
    header line. Files that end in .json or .jsonl have one object per line. Parquet files and
    folders of Arrow files have their own columns, and row numbers instead of line numbers. In both,
    fields of the columns `lists` may be lists, which are joined by the separator of their column.
    """
    if path.suffix.lower() in JSON_LINES:
        yield from json_rows(path, needed, lists or {})
        return
    if is_arrow(path):
        yield from arrow_rows(path, needed, lists=lists or {})
        return
    for line, header, fields in csv_rows(path, needed, comma, quoted_tabs, names):
        yield line, dict(zip(header, fields, strict=True))


def names_in(header: Iterable[str]) -> str:
    """Return the names of columns for a message, in quotes if they begin or end with a space."""
    names = (name if name == name.strip() else repr(name) for name in header if name)
    return ", ".join(names) or "none"


def check_columns(where: str, header: Sequence[str], needed: Iterable[str], hint: str = "") -> None:
    """Raise DataError, which ends with a hint, if a header lacks a column, or has it twice."""
    for name in needed:
        if header.count(name) != 1:
            found = "it twice" if name in header else names_in(header)
            raise DataError(f"{where}: expected a column {name!r}, found {found}{hint}")


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
    if is_arrow(path):
        return arrow_columns(path)
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
    return arrow_lists(path) & {*columns} if is_arrow(path) else set()


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


def is_arrow(path: Path) -> bool:
    """Return whether a path is a Parquet file or a folder, as saved by the library datasets."""
    return path.suffix.lower() == ".parquet" or path.is_dir()


def table_column(path: Path, column: str) -> Iterator[str]:
    """Return one column of a file with a header line."""
    return (row[column] for _, row in rows_by_name(path, [column]))


READERS: dict[str, Callable[[Path, str], Iterator[str]]] = {
    ".csv": table_column,
    ".tsv": table_column,
    ".jsonl": json_field,
    ".json": json_field,
    ".parquet": table_column,
}


def arrow_rows(
    path: Path,
    needed: Sequence[str],
    kept: Sequence[str] = (),
    lists: Mapping[str, str] = NO_LISTS,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (row number from 1, fields by column); classes have the names stored in the file.

    The columns that are `kept` may have any type, and may be missing.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise DataError(f"{path}: {missing('pyarrow')}") from error
    number = 0
    for file in shards(path):
        try:
            with opened(file, [*needed, *kept]) as (schema, batches):
                header = list(schema.names)
                check_columns(str(file), header, needed)
                names = class_names(schema)
                further = [name for name in kept if header.count(name) == 1]
                for batch in batches:
                    columns = [batch.column(name).to_pylist() for name in (*needed, *further)]
                    for values in zip(*columns, strict=True):
                        number += 1
                        texts = {
                            n: as_text(v, names.get(n), file, number, lists.get(n))
                            for n, v in zip(needed, values[: len(needed)], strict=True)
                        }
                        more = zip(further, values[len(needed) :], strict=True)
                        yield number, texts | {n: shown(v, names.get(n)) for n, v in more}
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(f"{file}: cannot be read: {error}") from error


def arrow_columns(path: Path) -> list[str]:
    """Return the names of the columns."""
    try:
        import pyarrow
    except ImportError:
        return []  # reading the rows reports the missing package
    try:
        with opened(shards(path)[0]) as (schema, _):
            return list(schema.names)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def arrow_lists(path: Path) -> set[str]:
    """Return the names of the columns whose values are lists."""
    try:
        from pyarrow import ArrowException, types
    except ImportError:
        return set()  # reading the rows reports the missing package
    is_list = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    try:
        with opened(shards(path)[0]) as (schema, _):
            return {field.name for field in schema if any(of(field.type) for of in is_list)}
    except (ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def shards(path: Path) -> list[Path]:
    """Return the sorted files of a path: a file, a pattern or a folder."""
    if path.is_dir():
        found = sorted(path.glob("*.arrow"))
        if not found:
            raise DataError(f"{path}: expected a file, found a folder without *.arrow files")
    else:
        found = sorted(path.parent.glob(path.name)) if "*" in path.name else [path]
    if not found or not found[0].exists():
        raise DataError(f"{path}: expected a data file, found none")
    for file in found:
        check_regular(file, DataError)
    return found


@contextmanager
def opened(file: Path, columns: Sequence[str] = ()) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open a file of Arrow or Parquet data: its schema, and batches of rows with these columns."""
    import pyarrow
    from pyarrow import parquet

    if file.suffix == ".arrow":
        with pyarrow.memory_map(str(file)) as mapped, pyarrow.ipc.open_stream(mapped) as stream:
            yield stream.schema, stream
        return
    with parquet.ParquetFile(file) as table:
        yield table.schema_arrow, table.iter_batches(ROWS, columns=list(dict.fromkeys(columns)))


def class_names(schema: Any) -> Mapping[str, list[str]]:
    """Return the names of the classes by column, from the metadata of the library datasets."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        items = {n: f.get("feature", f) for n, f in features.items()}  # of lists, or the column's
        return {n: f["names"] for n, f in items.items() if f.get("_type") == "ClassLabel"}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def shown(value: Any, names: Sequence[str] | None = None) -> str:
    """Return a value of any type as text: JSON, but for strings, missing values and dates."""
    if isinstance(value, int) and names is not None:
        return names[value] if 0 <= value < len(names) else ""
    value = missing_as_empty(value)
    if isinstance(value, bool | int | float | list | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def as_text(
    value: Any, names: Sequence[str] | None, file: Path, row: int, separator: str | None = None
) -> str:
    """Return a field as text, lists if there is a separator; a missing value is empty."""
    if isinstance(value, int) and names is not None:
        return names[value] if 0 <= value < len(names) else ""  # -1: no label
    if separator and isinstance(value, list):
        value = [as_text(one, names, file, row) for one in value]
        value = joined_list(value, separator, f"{file}, row {row}")
    value = str(value) if isinstance(value, Decimal | date | time) else to_text(value)
    if not isinstance(value, str) or not encodable(value):
        raise DataError(f"{file}, row {row}: expected text or a number, found {str(value)[:60]!r}")
    return value
