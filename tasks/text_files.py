"""Lines and values of text, CSV and JSONL files of any size; `tables.py` reads rows from them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.files import check_regular


class DataError(UserError):
    """An invalid data file."""


# The csv module's limit of 131,072 characters is too small for long texts. Without a limit, an open
# quote would include the rest of a file of any size.
csv.field_size_limit(1 << 24)
ZIP = b"PK\x03\x04"  # the first bytes of an Excel file and of other archives
Lines = Iterator[tuple[int, str]]  # line number from 1, text with the line break
Stamp = tuple[int, int]  # size and time of a file


def decoded_lines(path: Path) -> Lines:
    """Yield the lines of a UTF-8 file, with or without a byte-order mark."""
    check_regular(path, DataError)  # a pipe cannot be read twice
    try:
        with path.open("rb") as file:
            yield from decoded(file, str(path))
    except (FileNotFoundError, NotADirectoryError) as error:
        place = path if path.parent.is_dir() else path.parent
        what = "is a file" if place.is_file() else "does not exist"
        raise DataError(f"{path}: expected a data file, found none: {place} {what}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def decoded(lines: Iterable[bytes], name: str) -> Lines:
    """Yield lines of UTF-8 text, with or without a byte-order mark; errors contain `name`."""
    for number, line in enumerate(lines, 1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            found = f"found byte 0x{line[error.start]:02x}; save the file as UTF-8"
            if line.startswith(ZIP):
                found = "found an archive, such as an Excel file; save the sheet as CSV in UTF-8"
            raise DataError(f"{name}, line {number}: expected UTF-8 text, {found}") from error


def csv_lines(path: Path) -> Iterator[str]:
    """Yield lines as the csv module expects them, ended also by a lone carriage return."""
    for _, text in decoded_lines(path):
        if "\r" in text[:-2]:
            yield from io.StringIO(text, newline="")
        elif text:  # a file with only a byte-order mark is empty
            yield text


def json_rows(
    path: Path, needed: Sequence[str], lists: Mapping[str, str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, these fields as text) of a file with one JSON object per line.

    Fields of the columns `lists` may be lists, which are joined by the separator of their column.
    """
    for number, row in json_lines(path):
        if isinstance(row, dict):
            for name in lists.keys() & row.keys():
                row[name] = joined_list(row[name], lists[name], f"{path}, line {number}")
        yield number, {name: text_field(path, number, row, name, to_text) for name in needed}


def joined_list(value: Any, separator: str, where: str) -> Any:
    """Return a list of texts and numbers as one text; return other values as they are.

    Raise DataError for a list that cannot be split again.
    """
    if not isinstance(value, list):
        return value
    parts = [to_text(one) for one in value]
    for one in parts:
        if not isinstance(one, str) or not one or separator in one:
            raise DataError(
                f"{where}: expected labels without {separator!r}, not blank, found {one!r}"
            )
    return separator.join(parts)


def json_field(path: Path, column: str) -> Iterator[str]:
    """Yield one text field of a file with one JSON object per line; null is an empty text."""
    for number, row in json_lines(path):
        yield text_field(path, number, row, column, missing_as_empty)


def text_field(path: Path, line: int, row: Any, name: str, convert: Callable[[Any], Any]) -> str:
    """Return a field of a JSON object, converted to text; raise DataError for any other value."""
    if not isinstance(row, dict):
        found = f"found {type(row).__name__}"
        raise DataError(f"{path}, line {line}: expected a JSON object in each line, {found}")
    value = convert(row[name]) if name in row else None
    if not isinstance(value, str) or not encodable(value):
        found = f"{value!r}"[:60] if name in row else "no such key; null is a blank field"
        raise DataError(f"{path}, line {line}: expected text in {name!r}, found {found}")
    return value


def missing_as_empty(value: Any) -> Any:
    """Return "" for a missing value, None or NaN, and any other value as it is."""
    return "" if value is None or value != value else value


def to_text(value: Any) -> Any:
    """Convert numbers, truth values and missing values to text, whole numbers without a point.

    A column of classes may have whole numbers in one file and decimal points in another.
    """
    value = missing_as_empty(value)
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value) if isinstance(value, int | float) else value


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


def stamp(path: Path) -> Stamp:
    """Return size and time of a data file, which change with its content."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


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
