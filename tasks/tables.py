"""The reader of CSV, TSV, JSON Lines and Parquet files, by the ending of their names."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import UserError
from common.files import check_regular

JSON_LINES, PARQUET = (".json", ".jsonl"), ".parquet"
TABLES = (".csv", ".tsv", *JSON_LINES, PARQUET)
Rows = list[tuple[int, dict[str, Any]]]  # line number from 1, values by column

# The csv module's limit of 131,072 characters is too small for long texts. Without a limit, an open
# quote would include the rest of a file of any size.
csv.field_size_limit(1 << 24)


class DataError(UserError):
    """An invalid data file."""


class Table(NamedTuple):
    """A file in memory: its columns, and its rows with their line numbers, or those of Parquet.

    The columns of JSON Lines are the keys of the first object; a row may lack some.
    """

    path: Path
    columns: list[str]
    rows: Rows

    def fields(
        self, needed: Sequence[str], lists: Mapping[str, str] | None = None
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield (line number, fields of the `needed` columns as text) of each row.

        A field of the columns `lists` may be a list, which is joined by the column's separator.
        Raise DataError for a column that is not there or there twice, and for other values.
        """
        self.check(needed)
        for line, row in self.rows:
            try:
                yield line, {name: field(row, name, (lists or {}).get(name)) for name in needed}
            except ValueError as error:
                raise DataError(f"{self.path}, line {line}: {error}") from error

    def whole_rows(self, needed: Sequence[str]) -> Iterator[list[str]]:
        """Yield all fields of each row as text; but for the `needed` ones, lists are JSON."""
        self.check([*needed, *self.columns])
        for (_, row), (_, own) in zip(self.rows, self.fields(needed), strict=True):
            yield [own[name] if name in own else shown(row.get(name)) for name in self.columns]

    def check(self, needed: Sequence[str]) -> None:
        for name in needed:
            if (count := self.columns.count(name)) != 1:
                found = "it twice" if count else ", ".join(filter(None, self.columns)) or "none"
                raise DataError(f"{self.path}, line 1: expected a column {name!r}, found {found}")


def read_table(path: Path, quoted_tabs: bool = True, names: Sequence[str] | None = None) -> Table:
    """Read a file.

    Commas separate the fields of a file that ends in .csv, or has one in its header and does not
    end in .tsv; tabs separate those of others, and of a file with a tab in its header. Fields may
    be quoted, between tabs only with `quoted_tabs`. `names` are the columns of a file without a
    header line. Files that end in .json or .jsonl have one object per line. Raise DataError with
    file and line.
    """
    if path.suffix.lower() == PARQUET:
        return read_parquet(path)
    if path.suffix.lower() in JSON_LINES:
        rows = [
            (line, json_object(path, line, text)) for line, text in lines_of(path) if text.strip()
        ]
        return Table(path, [*rows[0][1]] if rows else [], rows)
    return read_csv(path, quoted_tabs, names)


def read_sentences(path: Path, column: str | None = None) -> Iterator[str]:
    """Return the texts in a column of a table, or without a `column` the lines of a text file.

    A text file is not held in memory. Blank lines are sentences too.
    """
    if column is not None:
        return (row[column] for _, row in read_table(path).fields([column]))
    if path.suffix.lower() in TABLES:
        expected = "expected the name of a column (--column, or --text-column with --text)"
        raise DataError(f"{path}: {expected}, found none")
    return (text.rstrip("\r\n") for _, text in lines_of(path))


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file with their numbers, from 1."""
    check_regular(path, DataError)  # a pipe cannot be read twice
    try:
        with path.open("rb") as file:
            yield from decoded(file, str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def decoded(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Yield lines of UTF-8 text, with or without a byte-order mark; errors contain `name`."""
    for number, line in enumerate(lines, 1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            found = f"found byte 0x{line[error.start]:02x}; save the file as UTF-8"
            raise DataError(f"{name}, line {number}: expected UTF-8 text, {found}") from error


def read_csv(path: Path, quoted_tabs: bool, names: Sequence[str] | None) -> Table:
    content = "".join(text for _, text in lines_of(path))
    header = "" if names else re.split("[\r\n]", content, maxsplit=1)[0]
    ending = path.suffix.lower()
    comma = "\t" not in header and (ending == ".csv" or (ending != ".tsv" and "," in header))
    kind = f"{'comma' if comma else 'tab'}-separated fields"
    reader = csv.reader(
        io.StringIO(content, newline=""),  # a lone carriage return ends a line, too
        delimiter="," if comma else "\t",
        quoting=csv.QUOTE_MINIMAL if comma or quoted_tabs else csv.QUOTE_NONE,
        strict=True,
    )
    rows: Rows = []
    columns, line = list(names or ()), 1  # the first line of a row that spans several
    try:
        for fields in reader:
            if not columns:
                columns = fields  # none in a blank line
            elif fields:
                if len(fields) != len(columns):
                    expected = f"expected {len(columns)} {kind}, found {len(fields)}"
                    raise DataError(f"{path}, line {line}: {expected}")
                rows.append((line, dict(zip(columns, fields, strict=True))))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {line}: expected {kind}, found: {error}") from error
    return Table(path, columns, rows)


def json_object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
        if "\\ud" in text.lower():  # half of a surrogate pair is no text
            row = json.loads(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {line}: expected JSON, found: {error}") from error
    if not isinstance(row, dict):
        found = f"expected a JSON object in each line, found {type(row).__name__}"
        raise DataError(f"{path}, line {line}: {found}")
    return row


def read_parquet(path: Path) -> Table:
    """Read a Parquet file; classes have the names that `datasets` stored, '' for other numbers."""
    from datasets import Dataset

    check_regular(path, DataError)
    try:
        content = Dataset.from_parquet(str(path), streaming=True)
        rows = [*enumerate(content, 1)]
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    for name, one in content.features.items():
        if names := getattr(getattr(one, "feature", one), "names", None):
            for _, row in rows:
                row[name] = class_name(row[name], names)
    return Table(path, list(content.features), rows)


def class_name(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [class_name(one, names) for one in value]
    return names[value] if value in range(len(names)) else ""


def field(row: Mapping[str, Any], name: str, separator: str | None = None) -> str:
    """Return a value as text, a list only with a separator; raise ValueError for other types."""
    if name not in row:
        raise ValueError(f"expected a key {name!r}, found {', '.join(row)}")
    if isinstance(value := row[name], str):
        return value
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


def shown(value: Any) -> str:
    """Return a value of any type as text: JSON, but for texts, missing values and dates."""
    if isinstance(value, bool | int | float | list | dict) and value == value:
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(to_text(value))
