"""Rows of CSV and TSV files, as every reader of them understands."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Any, TextIO


@dataclass(frozen=True)
class UnixLines:
    """A file that ends lines with LF in place of CR LF."""

    file: TextIO

    def write(self, line: str) -> int:
        return self.file.write(line.removesuffix("\r\n") + "\n")


def row_writer(file: TextIO, separator: str) -> Any:
    """Return a writer of `csv` whose rows end with LF.

    A field with a lone CR is quoted, as one with LF. Before Python 3.13, `csv` does so only if CR
    is a part of what ends its lines.
    """
    return csv.writer(UnixLines(file), delimiter=separator, lineterminator="\r\n")
