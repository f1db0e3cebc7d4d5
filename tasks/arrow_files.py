"""Rows of Parquet files and of folders saved by the library datasets, as text by column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.atomic_files import check_regular
from tasks.text_files import DataError, encodable, plain

ROWS = 4096  # in memory at a time


def arrow_rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (row number from 1, fields by column); classes have the names stored in the file."""
    try:
        import pyarrow
    except ImportError as error:
        raise DataError(
            f"{path}: expected the package pyarrow, found none: pip install -r "
            "requirements-extras.txt"
        ) from error
    number = 0
    for file in shards(path):
        try:
            for schema, batch in batches(file, needed):
                names = class_names(schema)
                columns = [batch.column(name).to_pylist() for name in needed]
                for values in zip(*columns, strict=True):
                    number += 1
                    fields = zip(needed, values, strict=True)
                    yield number, {n: as_text(v, names.get(n), file, number) for n, v in fields}
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(f"{file}: cannot be read: {error}") from error


def arrow_columns(path: Path) -> list[str]:
    """Return the names of the columns."""
    try:
        import pyarrow

        file = shards(path)[0]
        if file.suffix == ".arrow":
            with pyarrow.memory_map(str(file)) as mapped, pyarrow.ipc.open_stream(mapped) as stream:
                return list(stream.schema.names)
        from pyarrow import parquet

        return list(parquet.read_schema(file).names)
    except ImportError:
        return []  # reading the rows reports the missing package
    except (pyarrow.ArrowException, OSError) as error:
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


def batches(file: Path, needed: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Yield the schema and each record batch of a file; raise DataError for a missing column."""
    if file.suffix == ".arrow":
        import pyarrow as arrow

        with arrow.memory_map(str(file)) as mapped, arrow.ipc.open_stream(mapped) as stream:
            check_columns(file, stream.schema.names, needed)
            for batch in stream:
                yield stream.schema, batch
        return
    from pyarrow import parquet

    with parquet.ParquetFile(file) as opened:
        schema = opened.schema_arrow
        check_columns(file, schema.names, needed)
        for batch in opened.iter_batches(ROWS, columns=list(dict.fromkeys(needed))):
            yield schema, batch


def check_columns(file: Path, names: Sequence[str], needed: Sequence[str]) -> None:
    for name in needed:
        if list(names).count(name) != 1:
            found = "it twice" if name in names else ", ".join(names)
            raise DataError(f"{file}: expected a column {name!r}, found {found}")


def class_names(schema: Any) -> Mapping[str, list[str]]:
    """Return the names of the classes by column, from the metadata of the library datasets."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {n: f["names"] for n, f in features.items() if f.get("_type") == "ClassLabel"}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def as_text(value: Any, names: Sequence[str] | None, file: Path, row: int) -> str:
    """Return a field as text; a missing value is the empty string."""
    if isinstance(value, int) and names is not None:
        return names[value] if 0 <= value < len(names) else ""  # -1: no label
    value = plain(value)
    if not isinstance(value, str) or not encodable(value):
        raise DataError(f"{file}, row {row}: expected text or a number, found {str(value)[:60]!r}")
    return value
