"""Tables in plain text, Markdown and LaTeX, and the format of their cells."""

from __future__ import annotations

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


def mean_and_spread(values: Sequence[float], digits: int) -> str:
    """Format mean and sample standard deviation, `0.51 ± 0.02`, or a single value."""
    mean = f"{fmean(values):.{digits}f}"
    return f"{mean} ± {stdev(values):.{digits}f}" if len(values) > 1 else mean


def beside(printed: str, ours: str) -> str:
    """Format a published score and ours; either may be empty."""
    return f"{printed} / {ours}" if printed or ours else ""


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


def shown(value: Any) -> str:
    """Format the value of a setting for a cell."""
    if isinstance(value, Mapping):
        return " ".join(f"{key}={shown(one)}" for key, one in value.items())
    if isinstance(value, list):
        return " ".join(map(shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def marked(rows: Sequence[Sequence[str]], best: Cells, mark: str) -> list[list[str]]:
    """Return the rows with the cells in `best` put into the format `mark`."""
    return [
        [mark.format(cell) if (i, k) in best else cell for k, cell in enumerate(row)]
        for i, row in enumerate(rows)
    ]


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], best: Cells = frozenset()
) -> str:
    """Format a table as Markdown; the cells in `best` are bold."""
    lines = [header, ["---"] * len(header), *marked(rows, best, "**{}**")]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines
    )


def titled_table(title: str, table: Table, *notes: str) -> list[str]:
    """Return a title, a table in Markdown and its notes; nothing for a table without figures.

    Such a table has no rows, or no column beside that of the names.
    """
    header, rows = table
    return [title, markdown_table(*table), *notes] if rows and len(header) > 1 else []


def latex_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str,
    best: Cells = frozenset(),
) -> str:
    """Format a table as LaTeX with booktabs; the cells in `best` are bold."""
    plain = [[escaped(cell) for cell in row] for row in rows]
    body = marked(plain, best, r"\textbf{{{}}}")
    lines = [" & ".join(cells) + r" \\" for cells in (list(map(escaped, header)), *body)]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{escaped(caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


LATEX = {
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "<": r"$<$",
    ">": r"$>$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
} | {mark: f"\\{mark}" for mark in "&%$#_{}"}


def escaped(text: str) -> str:
    """Escape the special characters of LaTeX."""
    return "".join(LATEX.get(mark, mark) for mark in text)
