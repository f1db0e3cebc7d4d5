"""Lines of text files, and values of other files as text; `tables.py` reads rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.files import check_regular


class DataError(UserError):
    """An invalid data file."""


Lines = Iterator[tuple[int, str]]  # line number from 1, text with the line break


def decoded_lines(path: Path) -> Lines:
    """Yield the lines of a UTF-8 file, with or without a byte-order mark."""
    check_regular(path, DataError)  # a pipe cannot be read twice
    try:
        with path.open("rb") as file:
            yield from decoded(file, str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def decoded(lines: Iterable[bytes], name: str) -> Lines:
    """Yield lines of UTF-8 text, with or without a byte-order mark; errors contain `name`."""
    for number, line in enumerate(lines, 1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            found = f"found byte 0x{line[error.start]:02x}; save the file as UTF-8"
            raise DataError(f"{name}, line {number}: expected UTF-8 text, {found}") from error


def to_text(value: Any) -> Any:
    """Convert numbers, dates and missing values to text; return other values as they are.

    Whole numbers have no point: a column of classes may have 1 in one file and 1.0 in another.
    """
    if value is None or value != value:
        return ""
    if isinstance(value, bool) or (
        isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    ):
        value = int(value)
    return str(value) if isinstance(value, int | float | Decimal | date | time) else value
