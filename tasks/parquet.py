"""Rows and columns of Parquet files, which the library datasets reads a batch at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from common.files import check_regular
from tasks.text_files import (
    DataError,
    check_columns,
    encodable,
    joined_list,
    missing_as_empty,
    to_text,
)

PARQUET = ".parquet"


def opened(path: Path) -> Any:
    """Return an `IterableDataset` of a file, which has the types of the columns as `features`."""
    from datasets import Dataset

    if not path.exists():
        raise DataError(f"{path}: expected a data file, found none")
    check_regular(path, DataError)
    try:
        return Dataset.from_parquet(str(path), streaming=True)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def parquet_columns(path: Path) -> list[str]:
    """Return the names of the columns."""
    return list(opened(path).features)


def parquet_lists(path: Path) -> set[str]:
    """Return the names of the columns whose values are lists."""
    return {name for name, one in opened(path).features.items() if hasattr(one, "feature")}


def parquet_rows(
    path: Path, needed: Sequence[str], lists: Mapping[str, str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (row number from 1, fields by column), all columns with text or JSON.

    Those of `needed` are texts or numbers, or lists, which are joined by the separator of their
    column in `lists`. Classes have the names that are stored in the file.
    """
    table = opened(path)
    check_columns(str(path), list(table.features), needed)
    classes = {
        name: getattr(getattr(one, "feature", one), "names", None)
        for name, one in table.features.items()
    }
    try:
        for number, row in enumerate(table, 1):
            yield (
                number,
                {
                    name: as_text(value, classes[name], f"{path}, row {number}", lists.get(name))
                    if name in needed
                    else shown(value, classes[name])
                    for name, value in row.items()
                },
            )
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


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
    value: Any, names: Sequence[str] | None, where: str, separator: str | None = None
) -> str:
    """Return a field as text, lists if there is a separator; a missing value is empty."""
    if isinstance(value, int) and names is not None:
        return class_name(value, names)
    if separator and isinstance(value, list):
        value = joined_list([as_text(one, names, where) for one in value], separator, where)
    value = str(value) if isinstance(value, Decimal | date | time) else to_text(value)
    if not isinstance(value, str) or not encodable(value):
        raise DataError(f"{where}: expected text or a number, found {str(value)[:60]!r}")
    return value
