"""Colours of a terminal. Pipes, files, CI and NO_COLOR get plain text."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from common.errors import escape_unsafe


def has_colours() -> bool:
    """Return whether standard output is a terminal with colours (see https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("CI") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def highlighted(text: str) -> str:
    """Return a text in bold if the terminal has colours."""
    return f"\x1b[1m{text}\x1b[0m" if has_colours() else text


def coloured_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as wide as the terminal at most; columns of numbers are right-aligned."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", pad_edge=False)
    for number, title in enumerate(header):
        figures = [row[number].replace(",", "").rstrip("%") for row in rows if row[number]]
        right = bool(figures) and all(is_number(one) for one in figures)
        table.add_column(
            Text(escape_unsafe(title)), justify="right" if right else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(escape_unsafe(cell)) for cell in row))
    console = Console(highlight=False)
    with console.capture() as printed:
        console.print(table)
    return printed.get().strip("\n")


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
