"""Rows and columns of Parquet files, and of folders saved by the library datasets.

They need the package pyarrow. A path is a file, a pattern of files or a folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from common.atomic_files import check_regular
from common.extras import missing
from tasks.text_files import (
    DataError,
    check_columns,
    encodable,
    joined_list,
    missing_as_empty,
    to_text,
)

NO_LISTS: Mapping[str, str] = {}
ROWS = 4096  # of a Parquet file in memory at a time


def is_arrow(path: Path) -> bool:
    """Return whether a path is a Parquet file or a folder, as saved by the library datasets."""
    return path.suffix.lower() == ".parquet" or path.is_dir()


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
    """Return the names of the columns; none without pyarrow, which reading the rows reports."""
    return [field.name for field in arrow_fields(path)]


def arrow_lists(path: Path) -> set[str]:
    """Return the names of the columns whose values are lists."""
    return {field.name for field in arrow_fields(path) if "list" in str(field.type).split("<")[0]}


def arrow_fields(path: Path) -> list[Any]:
    """Return the fields of the schema; none without pyarrow."""
    try:
        from pyarrow import ArrowException
    except ImportError:
        return []
    try:
        with opened(shards(path)[0]) as (schema, _):
            return list(schema)
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


def class_name(number: int, names: Sequence[str]) -> str:
    """Return the name of a class; "" for another number, such as -1 for no label."""
    return names[number] if 0 <= number < len(names) else ""


def shown(value: Any, names: Sequence[str] | None = None) -> str:
    """Return a value of any type as text: JSON, but for strings, missing values and dates."""
    if isinstance(value, int) and names is not None:
        return class_name(value, names)
    value = missing_as_empty(value)
    if isinstance(value, bool | int | float | list | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def as_text(
    value: Any, names: Sequence[str] | None, file: Path, row: int, separator: str | None = None
) -> str:
    """Return a field as text, lists if there is a separator; a missing value is empty."""
    if isinstance(value, int) and names is not None:
        return class_name(value, names)
    if separator and isinstance(value, list):
        value = [as_text(one, names, file, row) for one in value]
        value = joined_list(value, separator, f"{file}, row {row}")
    value = str(value) if isinstance(value, Decimal | date | time) else to_text(value)
    if not isinstance(value, str) or not encodable(value):
        raise DataError(f"{file}, row {row}: expected text or a number, found {str(value)[:60]!r}")
    return value
