"""Printed figures of papers, read from `studies/PAPER/paper.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def printed(paper: str) -> dict[str, Any]:
    """Return all figures of a paper; see its file for tables and units."""
    return tomllib.loads((Path(__file__).parent / paper / "paper.toml").read_text("utf-8"))
