"""Types of flags: what a value must be, said in one line when it is not; and their defaults."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from multitask.config import RunConfig
from multitask.control import Every, parse_every

MANY = 1_000_000
DEFAULTS = RunConfig(mode="", tasks=())


def number(
    kind: Callable[[str], float], low: float, high: float, above: bool = False
) -> Callable[[str], Any]:
    """A number from `low` (or above it) to `high`."""

    def parse(text: str) -> float:
        what = "a whole number" if kind is int else "a number"
        span = f"above {low} and at most {high}" if above else f"from {low} to {high}"
        try:
            value = kind(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high or (above and value == low):
            raise argparse.ArgumentTypeError(f"expected {what} {span}, found {text!r}")
        return value

    return parse


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


COUNT = number(int, 1, MANY)
RATE = number(float, 0, MANY, above=True)


def default(name: str, defaults: RunConfig | None = None) -> str:
    """The end of a help text that tells the default; nothing where there is none."""
    value = getattr(defaults or DEFAULTS, name)
    return "" if value is None else f" (default: {value})"
