"""Argument types of the studies' own flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def positive(kind: Callable[[str], float]) -> Callable[[str], Any]:
    """Return a parser of numbers above 0."""

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not value > 0:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"expected {what} above 0, found {text!r}")
        return value

    return parse


def seed(text: str) -> int:
    """Parse a whole number, 0 or above."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, 0 or above, found {text!r}")
    return int(text)


def share(text: str) -> float:
    """Parse a number above 0 and below 1."""
    value = positive(float)(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"expected a number below 1, found {text!r}")
    return float(value)
