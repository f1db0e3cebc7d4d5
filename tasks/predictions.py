"""Prediction files: the CS224N leaderboard's, and the probabilities beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from minbert.errors import UserError


class PredictionError(UserError):
    """A file of predictions that cannot be used."""


@dataclass(frozen=True)
class Scores:
    """What a run says of N examples: `values` (N, C) probabilities or (N,) similarities, float32.

    `targets` (N,) are there for a dev split; `predictions` (N,) where they do not follow from the
    values, as those of a vote.
    """

    ids: np.ndarray
    values: np.ndarray
    targets: np.ndarray | None = None
    predictions: np.ndarray | None = None


@dataclass(frozen=True)
class PredictionFile:
    """The leaderboard's file of a task: `STEM-dev-output.csv`, its column, how a value is shown.

    `parse` reads a value as `show` writes it; ValueError says what else was expected.
    """

    stem: str
    column: str
    show: Callable[[float], str]
    parse: Callable[[str], float] = float

    @property
    def header(self) -> str:
        return f"id \t {self.column} "

    def name(self, split: str) -> str:
        return f"{self.stem}-{split}-output.csv"


def scores_name(task: str, split: str) -> str:
    """The file of a task's probabilities or similarities, beside the leaderboard's."""
    return f"{task}-{split}-probabilities.npz"


def write_predictions(
    path: Path,
    output: PredictionFile,
    ids: Sequence[str] | np.ndarray,
    predictions: Sequence[float] | np.ndarray,
) -> None:
    """Write `id \\t COLUMN \\n` and rows `ID , VALUE \\n`, the leaderboard's bytes."""
    rows = [f"{i} , {output.show(p)} \n" for i, p in zip(ids, predictions, strict=True)]
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(f"{output.header}\n" + "".join(rows), "utf-8", newline="\n")
    os.replace(temporary, path)


def write_scores(
    path: Path,
    ids: Sequence[str] | np.ndarray,
    scores: np.ndarray,
    targets: np.ndarray | None = None,
    predictions: np.ndarray | None = None,
) -> None:
    """Write `ids`, `probabilities` (n, C) or similarities (n,), float32, and what else is given."""
    arrays = {"ids": np.array(ids, dtype=np.str_), "probabilities": scores.astype(np.float32)}
    for name, array in (("targets", targets), ("predictions", predictions)):
        if array is not None:
            arrays[name] = array
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    os.replace(temporary, path)


def read_scores(path: Path) -> Scores:
    """What `write_scores` wrote; PredictionError where it is not that."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise PredictionError(f"{path}: expected a run's probabilities, found no file") from None
    except (OSError, ValueError, BadZipFile, EOFError) as error:
        raise PredictionError(f"{path}: expected a run's probabilities: {error}") from error
    for name in ("ids", "probabilities"):
        if name not in arrays:
            raise PredictionError(f"{path}: expected an array {name!r}, found none")
    found = Scores(
        arrays["ids"], arrays["probabilities"], arrays.get("targets"), arrays.get("predictions")
    )
    for name, array in arrays.items():
        if len(array) != len(found.ids):
            raise PredictionError(
                f"{path}: {name}: expected {len(found.ids)} rows, as there are ids, "
                f"found {len(array)}"
            )
    if not np.isfinite(found.values).all():
        row = int(np.flatnonzero(~np.isfinite(found.values).reshape(len(found.ids), -1).all(1))[0])
        raise PredictionError(
            f"{path}: expected finite values, found others at id {found.ids[row]}"
        )
    if len(set(found.ids.tolist())) < len(found.ids):
        raise PredictionError(f"{path}: expected each id once, found some twice")
    return found


def one_of(values: Sequence[str]) -> Callable[[str], float]:
    """Reads one of these values, written just so."""

    def parse(text: str) -> float:
        if text not in values:
            raise ValueError(f"expected {', '.join(values)}, found {text[:40]!r}")
        return float(text)

    return parse


def finite_number(text: str) -> float:
    """Reads a number that is neither infinite nor NaN."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value) or text != text.strip():
        raise ValueError(f"expected a finite number, found {text[:40]!r}")
    return value
