"""Tables in plain text and Markdown, and the format of their cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from common.errors import escape_unsafe

Table = tuple[list[str], list[list[str]]]  # header, rows
Cells = frozenset[tuple[int, int]]  # row and column, both from 0, without the header


@dataclass(frozen=True)
class Section:
    """A title, a table, and the cells (row, column) with the best value of their column.

    Cells with `numbers` are right-aligned on a page.
    """

    title: str
    table: Table
    best: Cells = frozenset()
    numbers: bool = True


def mean_and_spread(values: Sequence[float]) -> str:
    """Format mean ± standard deviation (number of values), or a single value; empty without any."""
    if len(values) < 2:
        return "".join(f"{one:.4f}" for one in values)
    return f"{fmean(values):.4f} ± {stdev(values):.4f} ({len(values)})"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table as plain text; the last column is right-aligned.

    Each cell is one line, and control characters are escaped for the terminal.
    """
    cells = [[escape_unsafe(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(width) if i == len(header) - 1 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], best: Cells = frozenset()
) -> str:
    """Format a table as Markdown; the cells in `best` are bold."""
    bold = [
        [f"**{cell}**" if (i, k) in best else cell for k, cell in enumerate(row)]
        for i, row in enumerate(rows)
    ]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        for cells in (header, ["---"] * len(header), *bold)
    )


def shown(value: Any) -> str:
    """Format the value of a setting for a cell."""
    if isinstance(value, Mapping):
        return " ".join(f"{key}={shown(one)}" for key, one in value.items())
    if isinstance(value, list):
        return " ".join(map(shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
