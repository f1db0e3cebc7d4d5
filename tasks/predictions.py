"""Prediction files of the CS224N leaderboard, and files of probabilities."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from common.array_files import read_arrays, write_arrays
from common.errors import UserError
from common.files import atomic_write_text
from tasks.kind import Kind
from tasks.labelled_files import Label

FURTHER_ARRAYS = ("targets", "predictions", "selected_on")
# NumPy's dtype kinds and numbers of axes of the arrays in a file of scores.
ARRAYS = {
    "ids": ("U", (1,)),
    "probabilities": ("f", (1, 2)),
    "targets": ("fiu", (1, 2)),
    "predictions": ("fiu", (1, 2)),
    "selected_on": ("b", (1,)),
}
KINDS = {"U": "text", "f": "numbers", "b": "truth values"}
LARGEST = 1e100  # similarity, so that its square is finite
NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Scores:
    """Scores of N examples: `values` (N, C) probabilities or (N,) similarities, float32.

    `targets` (N,) exist for a dev split. `predictions` (N,) exist if they do not follow from the
    values, as in a vote. `selected_on` (N,) marks the examples by which an ensemble's members were
    selected; metrics must exclude them.
    """

    ids: np.ndarray
    values: np.ndarray
    targets: np.ndarray | None = None
    predictions: np.ndarray | None = None
    selected_on: np.ndarray | None = None

    def predicted(self, predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the stored predictions (N,), or those of the task's `predict` from the values."""
        return predict(self.values) if self.predictions is None else self.predictions

    def rows(self, rows: np.ndarray) -> Scores:
        """Return the examples of these rows, in their order."""

        def select(array: Any) -> Any:
            return None if array is None else array[rows]

        return Scores(*(select(getattr(self, one.name)) for one in fields(self)))


@dataclass(frozen=True)
class PredictionFile:
    """The leaderboard's file of a task: `STEM-dev-output.csv`, its column, its number format.

    `parse` reads a value that `show` wrote, or raises ValueError with the expected values.
    Similarities outside of the `scale` are also read. With a `separator`, fields are separated by
    it, without spaces, and quoted if they contain it.
    """

    stem: str
    column: str
    show: Callable[[Any], str]
    parse: Callable[[str], Label] = float
    scale: tuple[float, float] | None = None  # of similarities, as returned by `parse`
    separator: str | None = None

    @property
    def header(self) -> str:
        if self.separator is None:
            return f"id \t {self.column} "
        return f"id{self.separator}{self.column}"

    def row(self, identity: str, prediction: Any) -> str:
        value = self.show(prediction)
        if self.separator is None:
            return f"{identity} , {value} "
        return identity + self.separator + (f'"{value}"' if self.separator in value else value)

    def name(self, split: str) -> str:
        return f"{self.stem}-{split}-output.csv"


def class_file(stem: str, column: str, classes: int) -> PredictionFile:
    """Return a prediction file with the numbers of classes."""
    return PredictionFile(
        stem,
        column,
        show=lambda value: str(int(value)),
        parse=one_of([str(label) for label in range(classes)]),
    )


def scores_name(task: str, split: str) -> str:
    """Return the name of the file with a task's probabilities or similarities."""
    return f"{task}-{split}-probabilities.npz"


def write_prediction_file(
    path: Path,
    output: PredictionFile,
    ids: Sequence[str] | np.ndarray,
    predictions: Sequence[float] | np.ndarray,
) -> None:
    """Write `id \\t COLUMN \\n` and rows `ID , VALUE \\n`, exactly as the leaderboard expects.

    A file with a separator has lines `id,COLUMN` and `ID,VALUE` instead.
    """
    rows = [f"{output.row(i, p)}\n" for i, p in zip(ids, predictions, strict=True)]
    atomic_write_text(path, f"{output.header}\n" + "".join(rows))


def write_scores(path: Path, scores: Scores) -> None:
    """Write `ids`, `probabilities` (N, C) or similarities (N,), float32, and optional arrays."""
    arrays = {
        "ids": np.array(scores.ids, dtype=np.str_),
        "probabilities": scores.values.astype(np.float32),
    }
    for name in FURTHER_ARRAYS:
        if (array := getattr(scores, name)) is not None:
            arrays[name] = array
    write_arrays(path, arrays)


def read_scores(path: Path) -> Scores:
    """Read a file of `write_scores`; raise UserError for any other file."""
    arrays = read_arrays(path, "a run's probabilities", UserError)
    for name in ("ids", "probabilities"):
        if name not in arrays:
            raise UserError(f"{path}: expected an array {name!r}, found none")
    for name, array in arrays.items():
        kinds, axes = ARRAYS.get(name, ("", ()))
        if name in ARRAYS and (array.dtype.kind not in kinds or array.ndim not in axes):
            raise UserError(
                f"{path}: {name}: expected {' or '.join(map(str, axes))} axes of "
                f"{KINDS[kinds[0]]}, found {array.ndim} of {array.dtype}"
            )
    further = {name: arrays.get(name) for name in FURTHER_ARRAYS}
    found = Scores(arrays["ids"], arrays["probabilities"], **further)
    for name, array in arrays.items():
        if len(array) != len(found.ids):
            raise UserError(
                f"{path}: {name}: expected {len(found.ids)} rows, one per id, found {len(array)}"
            )
    if not np.isfinite(found.values).all():
        row = int(np.flatnonzero(~np.isfinite(found.values).reshape(len(found.ids), -1).all(1))[0])
        raise UserError(f"{path}: expected finite values, found others at id {found.ids[row]}")
    if len(set(found.ids.tolist())) < len(found.ids):
        raise UserError(f"{path}: expected each id once, found some twice")
    return found


def read_scores_of(path: Path, kind: Kind) -> Scores:
    """Read the scores of a task of this kind.

    Raises UserError for values of another shape, and for invalid targets or predictions.
    """
    found, classes, several = read_scores(path), kind.columns, kind.labels is not None
    shape = found.values.shape[1:]
    if shape != (() if classes is None else (classes,)):
        expected = "similarities" if classes is None else f"probabilities of {classes} classes"
        other = f"probabilities of {shape[0]} classes" if shape else "similarities"
        raise UserError(f"{path}: expected {expected}, found {other}")
    for name in ("targets", "predictions"):
        values = getattr(found, name)
        if values is None:
            continue
        if values.shape != (found.values.shape if several else found.ids.shape):
            axes = 2 if several else 1
            raise UserError(f"{path}: {name}: expected {axes} axes, found {values.ndim}")
        good = np.isfinite(values)
        if classes is not None:
            good &= np.isin(values, np.arange(classes))
        if not good.all():
            what = "finite numbers" if classes is None else f"classes from 0 to {classes - 1}"
            strange = values[~good][0]
            raise UserError(f"{path}: {name}: expected {what}, found {strange}")
    return found


def one_of(values: Sequence[str]) -> Callable[[str], float]:
    """Return a parser that accepts exactly these values."""

    def parse(text: str) -> float:
        if text not in values:
            raise ValueError(f"expected {', '.join(values)}, found {text[:40]!r}")
        return float(text)

    return parse


def finite_number(text: str) -> float:
    """Parse a decimal number, such as 2.5 or -1e-05, that is neither infinite nor NaN."""
    value = float(text) if NUMBER.fullmatch(text) else np.nan
    if not abs(value) < LARGEST:
        raise ValueError(
            f"expected a finite number such as 2.5 or -1e-05, below {LARGEST:g}, "
            f"found {text[:40]!r}"
        )
    return value
