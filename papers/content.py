"""What a person wrote about a paper: its TOML file, with the printed figures and every sentence."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table of a page: `columns` are titles by name, `rows` are printed figures by column.

    `row` and `task` say which row of the paper a cell shows, and on which task, from the names of
    its `{row}` and `{column}`: with row = "{column}-{row}", the cell of `ls` under `sst2` is that
    of the row `sst2-ls`. The tasks `gain`, `rank` and `mean` are computed from several. A row may
    have a `text` for its first cell, and other names of rows of the paper by column, `of`. Figures
    are multiplied by `scale` and rounded to `digits`, and those of a column in `forms` by its two
    numbers. With a `reference`, a row, the last column has the differences from it.
    """

    title: str
    columns: Mapping[str, str]
    rows: Mapping[str, Mapping[str, Any]]
    row: str = "{row}"
    task: str = "{column}"
    split: str | None = None
    scale: float = 100
    digits: int = 1
    forms: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    reference: str = ""

    def source(self, row: str, column: str) -> tuple[str, str]:
        """Return the row of the paper and the task whose scores a cell has."""
        of = {"row": row, "column": column}
        name = self.rows.get(row, {}).get("of", {}).get(column) or self.row.format(**of)
        return name, self.task.format(**of)


@dataclass(frozen=True)
class Claim:
    """A claim: the terms `plus` are above the terms `minus`; see `papers.evidence.Difference`."""

    id: str
    text: str
    plus: Sequence[str]
    minus: Sequence[str]
    split: str | None = None
    scale: float = 100.0


@dataclass(frozen=True)
class Content:
    """The TOML file of a paper.

    `metrics` are the main metrics by task, or `default`; they are those of the paper's `split`, or
    else of `train`. `singles` are the rows of one task each, by task, for the columns `gain` and
    `rank`. `command` is that of a page without rows to run.
    """

    title: str
    split: str
    metrics: Mapping[str, str]
    summary: Sequence[str]
    differs: Sequence[str]
    tables: Sequence[Table]
    claims: Sequence[Claim]
    figure: str = ""
    singles: Mapping[str, str] = field(default_factory=dict)
    command: str = ""


def content_of(name: str) -> Content:
    """Read the TOML file of a paper; an unknown key is a TypeError."""
    found = tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))
    tables = [Table(**one) for one in found.pop("tables")]
    claims = [Claim(**one) for one in found.pop("claims", ())]
    return Content(**found, tables=tables, claims=claims)
