"""What is measured at one point of a joint run, and the file that keeps it.

m tasks; R rounds, each with one batch of every task; P parts of the encoder; K columns of a sketch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.atomic_files import atomic_path
from common.errors import RunError

ARRAYS = ("losses", "grams", "sketches")


def measures_file(folder: Path, epoch: int, rounds: int) -> Path:
    """Return the file of the measures after an epoch."""
    return folder / f"epoch-{epoch}-rounds-{rounds}.npz"


@dataclass(frozen=True)
class Measures:
    """The measures of one model.

    `losses` (R, m) are those of the batches. `grams` (R, P, m, m) has the products of the tasks'
    gradients by part of the encoder. `sketches` (R, m, K) are random projections of the complete
    gradients. `seconds` is the time that the measurement took.
    """

    losses: np.ndarray
    grams: np.ndarray
    sketches: np.ndarray
    parts: tuple[str, ...]
    seconds: float

    def save(self, file: Path, run: str) -> None:
        """Write the file, with a digest of the `run`'s configuration."""
        file.parent.mkdir(parents=True, exist_ok=True)
        about = {"run": run, "parts": self.parts, "seconds": self.seconds}
        with atomic_path(file) as new, new.open("xb") as opened:
            arrays = {name: getattr(self, name) for name in ARRAYS}
            np.savez(opened, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def load(cls, file: Path, run: str) -> Measures | None:
        """Read a file that `save` wrote; return None without one, or if it is of another run."""
        if not file.exists():
            return None
        try:
            with np.load(file, allow_pickle=False) as found:
                about = json.loads(str(found["about"]))
                arrays = {name: found[name] for name in ARRAYS}
        except (OSError, ValueError, KeyError) as error:
            raise RunError(f"{file}: expected measures of gradients, found: {error}") from error
        if about["run"] != run:
            return None
        return cls(**arrays, parts=tuple(about["parts"]), seconds=about["seconds"])
