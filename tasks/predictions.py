"""Prediction files: the CS224N leaderboard's, and the probabilities beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np


def write_predictions(
    path: Path,
    column: str,
    ids: Sequence[str],
    predictions: Sequence[float] | np.ndarray,
    output_format: Callable[[float], str],
) -> None:
    """Write `id \\t COLUMN \\n` and rows `ID , VALUE \\n`, the leaderboard's bytes."""
    rows = [f"{i} , {output_format(p)} \n" for i, p in zip(ids, predictions, strict=True)]
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(f"id \t {column} \n" + "".join(rows), "utf-8", newline="\n")
    os.replace(temporary, path)


def write_scores(
    path: Path, ids: Sequence[str], scores: np.ndarray, targets: np.ndarray | None = None
) -> None:
    """Write `ids`, `probabilities` (n, C) or similarities (n,), float32, and any `targets` (n,)."""
    arrays = {"ids": np.array(ids, dtype=np.str_), "probabilities": scores.astype(np.float32)}
    if targets is not None:
        arrays["targets"] = targets
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    os.replace(temporary, path)
