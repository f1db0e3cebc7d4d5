"""Types of flags: what a value must be, said in one line when it is not; and their defaults."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from multitask import values
from multitask.config import RunConfig
from multitask.control import Every, parse_every
from multitask.values import LIMIT, Number, is_limit

DEFAULTS = RunConfig(mode="", tasks=())


def number(
    kind: Callable[[str], float], low: float, high: float, above: bool = False
) -> Callable[[str], Any]:
    """A number from `low` (or above it) to `high`."""
    return parser_of(Number(low, high, above, whole=kind is int))


def parser_of(numbers: Number) -> Callable[[str], Any]:
    """A flag's type from what a setting may be."""

    def parse(text: str) -> float:
        try:
            value = int(text) if numbers.whole else float(text)
        except ValueError:
            value = float("nan")
        if not numbers.holds(value):
            raise argparse.ArgumentTypeError(f"expected {numbers.expected}, found {text!r}")
        return value

    return parse


def limit(text: str) -> tuple[str | None, int | float]:
    """`4000` and `0.25` -> (None, number); `sst=100` -> ("sst", 100)."""
    task, sign, given = text.rpartition("=")
    try:
        value = int(given) if given.isdecimal() else float(given)
    except ValueError:
        value = 0
    if not is_limit(value) or bool(sign) != bool(task):
        raise argparse.ArgumentTypeError(f"expected {LIMIT}, or TASK=N, found {text!r}")
    return task or None, value


def path(text: str) -> str:
    """The name of a file or folder, with `~` for the user's own."""
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"expected a path, found {text!r}")
    return os.path.expanduser(text)


def column_name(text: str) -> str:
    """The name of a column, which is not blank."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"expected the name of a column, found {text!r}")
    return text


def every(text: str) -> Every:
    """How often, in steps or in time."""
    try:
        return parse_every(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}, found {text!r}") from error


COUNT = parser_of(values.COUNT)
RATE = parser_of(values.RATE)


def default(name: str, defaults: RunConfig | None = None) -> str:
    """The end of a help text that tells the default; nothing where there is none."""
    value = getattr(defaults or DEFAULTS, name)
    return "" if value is None else f" (default: {value})"
