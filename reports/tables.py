"""Tables in plain text, Markdown and LaTeX, and the figures in their cells."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from common.errors import harmless


def mean_and_spread(values: Sequence[float], digits: int) -> str:
    """`0.51 ± 0.02`, the standard deviation of a sample; the mean alone of a single value."""
    mean = f"{fmean(values):.{digits}f}"
    return f"{mean} ± {stdev(values):.{digits}f}" if len(values) > 1 else mean


def beside(printed: str, ours: str) -> str:
    """A paper's figure and ours, of which either may be missing."""
    return f"{printed} / {ours}" if printed or ours else ""


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; the last one, of figures, to the right.

    Each cell is one line: names and texts of foreign files do no harm to a terminal.
    """
    cells = [[harmless(cell) for cell in row] for row in (header, *rows)]
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


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines
    )


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """The same for LaTeX with booktabs."""
    lines = [" & ".join(map(escaped, cells)) + r" \\" for cells in (header, *rows)]
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
    """Text that LaTeX shows as it is."""
    return "".join(LATEX.get(mark, mark) for mark in text)
