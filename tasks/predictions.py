"""Prediction files of the CS224N leaderboard, and files of probabilities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from common.files import atomic_path, atomic_write_text
from tasks.kinds import Kind


@dataclass(frozen=True)
class Scores:
    """Scores of N examples: `values` (N, C) probabilities or (N,) similarities, float32.

    `predictions` (N,) exist if they do not follow from the values, as in a vote. `selected_on` (N,)
    marks the examples by which an ensemble's members were selected; metrics must exclude them.
    """

    ids: np.ndarray
    values: np.ndarray
    targets: np.ndarray | None = None
    predictions: np.ndarray | None = None
    selected_on: np.ndarray | None = None

    def predicted(self, predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the stored predictions (N,), or those of the task's `predict` from the values."""
        return predict(self.values) if self.predictions is None else self.predictions

    def rows(self, rows: np.ndarray) -> "Scores":
        """Return the examples of these rows, in their order."""
        chosen = {name: array[rows] for name, array in vars(self).items() if array is not None}
        return Scores(**chosen)


@dataclass(frozen=True)
class PredictionFile:
    """The leaderboard's file of a task: `STEM-dev-output.csv`, its column, its number format."""

    stem: str
    column: str
    show: Callable[[Any], str] = lambda number: str(int(number))
    scale: tuple[float, float] | None = None  # of similarities, as scores have it
    commas: bool = False  # between the fields, without spaces

    @property
    def header(self) -> str:
        return f"id,{self.column}" if self.commas else f"id \t {self.column} "

    def row(self, identity: str, prediction: Any) -> str:
        value = self.show(prediction)
        if not self.commas:
            return f"{identity} , {value} "
        return f'{identity},"{value}"' if "," in value else f"{identity},{value}"

    def name(self, split: str) -> str:
        return f"{self.stem}-{split}-output.csv"


def scores_name(task: str, split: str) -> str:
    """Return the name of the file with a task's probabilities or similarities."""
    return f"{task}-{split}-probabilities.npz"


def write_prediction_file(
    path: Path,
    output: PredictionFile,
    ids: Sequence[str] | np.ndarray,
    predictions: Sequence[float] | np.ndarray,
) -> None:
    """Write `id \\t COLUMN \\n` and rows `ID , VALUE \\n`, exactly as the leaderboard expects."""
    rows = [f"{output.row(i, p)}\n" for i, p in zip(ids, predictions, strict=True)]
    atomic_write_text(path, f"{output.header}\n" + "".join(rows))


def write_scores(path: Path, scores: Scores) -> None:
    """Write `ids`, `probabilities` (N, C) or similarities (N,), float32, and optional arrays."""
    arrays = {name: array for name, array in vars(scores).items() if array is not None}
    ids, values = np.array(arrays.pop("ids"), np.str_), arrays.pop("values").astype(np.float32)
    with atomic_path(path) as new, new.open("xb") as file:
        np.savez(file, ids=ids, probabilities=values, **arrays)


def read_scores(path: Path, kind: Kind | None = None) -> Scores:
    """Read a file of `write_scores`; raise UserError for others, or if it is not of this kind."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        found = Scores(values=arrays.pop("probabilities"), **arrays)
        several = [one for one in vars(found).values() if one is not None]
        if not np.isfinite(found.values).all() or {*map(len, several)} != {found.ids.size}:
            raise ValueError("expected a finite value for each id, found others")
        if len({*found.ids.tolist()}) < len(found.ids):
            raise ValueError("expected each id once, found some twice")
        if (found.values.dtype.kind, found.ids.dtype.kind) != ("f", "U"):
            raise ValueError("expected numbers with a point, and ids as text, found others")
    except Exception as error:  # a damaged archive raises many different classes
        shown = f"{type(error).__name__}: {error}"
        raise UserError(f"{path}: expected a run's probabilities ({shown})") from error
    theirs = found.values.shape[1] if found.values.ndim > 1 else None
    if kind is not None and theirs != kind.columns:
        mine, other = (
            "similarities" if count is None else f"probabilities of {count} classes"
            for count in (kind.columns, theirs)
        )
        raise UserError(f"{path}: expected {mine}, found {other}")
    if theirs and not (0 <= found.values.min() <= found.values.max() <= 1.001):  # bf16 rounds
        raise UserError(f"{path}: expected probabilities from 0 to 1, found others")
    return found
