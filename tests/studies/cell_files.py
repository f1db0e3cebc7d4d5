"""Cells of invented figures, as a study keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports.cells import write_cell

TODAY = {"date": "2100-01-01T00:00:00+00:00"}  # after all mends


def keep_seeds(file: Path, config: Mapping[str, Any], seeds: Mapping[str, Any]) -> None:
    """The cell of several seeds, made after all mends."""
    dated = {seed: {"environment": TODAY} | metrics for seed, metrics in seeds.items()}
    write_cell(file, {"config": dict(config), "seeds": dated})
