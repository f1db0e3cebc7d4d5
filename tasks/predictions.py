"""Prediction files: the CS224N leaderboard's, and the probabilities beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class PredictionFile:
    """The leaderboard's file of a task: `STEM-dev-output.csv`, its column, how a value is shown."""

    stem: str
    column: str
    show: Callable[[float], str]

    def name(self, split: str) -> str:
        return f"{self.stem}-{split}-output.csv"


def scores_name(task: str, split: str) -> str:
    """The file of a task's probabilities or similarities, beside the leaderboard's."""
    return f"{task}-{split}-probabilities.npz"


def write_predictions(
    path: Path,
    output: PredictionFile,
    ids: Sequence[str],
    predictions: Sequence[float] | np.ndarray,
) -> None:
    """Write `id \\t COLUMN \\n` and rows `ID , VALUE \\n`, the leaderboard's bytes."""
    rows = [f"{i} , {output.show(p)} \n" for i, p in zip(ids, predictions, strict=True)]
    temporary = path.with_name(path.name + ".tmp")
    header = f"id \t {output.column} \n"
    temporary.write_text(header + "".join(rows), "utf-8", newline="\n")
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
