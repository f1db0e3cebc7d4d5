"""All fields of the rows of a file, in the order of its columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.errors import Notice
from tasks.parquet import PARQUET, parquet_rows, shown
from tasks.tables import JSON_LINES, csv_rows
from tasks.text_files import json_lines, text_field, to_text

WholeRows = Iterator[tuple[Sequence[str], Sequence[str]]]  # all columns, fields in their order


def whole_rows(path: Path, needed: Sequence[str], quoted_tabs: bool = True) -> WholeRows:
    """Yield the columns and the fields of each row; those of `needed` columns are texts or numbers.

    Raise DataError as `rows_by_name` does. Other columns may have any type: lists and the like are
    written as JSON. The columns of a file of JSON objects are the keys of the first one; a missing
    key is an empty field, and the rows with further keys are counted in a Notice.
    """
    if path.suffix.lower() in JSON_LINES:
        yield from whole_json_rows(path, needed)
    elif path.suffix.lower() == PARQUET:
        for _, row in parquet_rows(path, needed, {}):
            yield [*row], [*row.values()]
    else:
        for _, names, fields in csv_rows(path, needed, quoted_tabs=quoted_tabs):
            yield names, fields


def whole_json_rows(path: Path, needed: Sequence[str]) -> WholeRows:
    header: list[str] = []
    known: set[str] = set()
    further, total = 0, 0
    for number, row in json_lines(path):
        found = {name: text_field(path, number, row, name, to_text) for name in needed}
        header, known = header or [*row], known or {*row}
        total, further = total + 1, further + (not row.keys() <= known)
        yield header, [found[n] if n in found else shown(row.get(n)) for n in header]
    if further:
        line = f"{further:,} of {total:,} rows have fields that the first row lacks"
        warnings.warn(f"{line}; they are not in the output", Notice, stacklevel=2)
