"""What is measured at one point of a joint run, and the file that keeps it.

m tasks; R rounds, each with one batch of every task; P parts of the encoder; K columns of a sketch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.array_files import read_arrays, write_arrays
from common.errors import RunError
from common.json_files import digest
from multitask.settings.config import RunConfig
from multitask.storage.run_folder import DATA

FEWEST_ROUNDS = 4  # per epoch: bootstrapping draws from halves of them
ARRAYS = ("losses", "grams", "sketches")


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

    def save(self, file: Path, origin: str) -> None:
        """Write the file, with its `origin`: what it is measured of."""
        file.parent.mkdir(parents=True, exist_ok=True)
        about = {"origin": origin, "parts": self.parts, "seconds": self.seconds}
        arrays = {name: getattr(self, name) for name in ARRAYS}
        write_arrays(file, {"about": np.array(json.dumps(about)), **arrays})

    @classmethod
    def load(cls, file: Path, origin: str) -> Measures | None:
        """Read a file that `save` wrote; return None without one, or with another origin."""
        if not file.exists():
            return None
        try:
            found = read_arrays(file, "measures of gradients", RunError)
            about = json.loads(str(found["about"]))
            arrays = {name: found[name] for name in ARRAYS}
            if about.get("origin") != origin:
                return None
            measures = cls(**arrays, parts=tuple(about["parts"]), seconds=float(about["seconds"]))
            measures.check()
            return measures
        except (RunError, ValueError, KeyError, TypeError, AttributeError) as error:
            line = "expected measures of gradients, found a damaged file"
            raise RunError(f"{file}: {line}; --overwrite trains and measures again") from error

    def check(self) -> None:
        """Raise ValueError for arrays that do not fit together or are not finite."""
        rounds, tasks = self.losses.shape
        fit = self.grams.shape == (rounds, len(self.parts), tasks, tasks)
        if not fit or self.sketches.shape[:-1] != (rounds, tasks):
            raise ValueError("expected arrays of the same rounds, parts and tasks")
        if not all(np.isfinite(getattr(self, name)).all() for name in ARRAYS):
            raise ValueError("expected finite numbers")


@dataclass(frozen=True)
class MeasureFiles:
    """The files of what is measured after each epoch of a joint run, with at most `rounds` rounds.

    `run` is the folder of the joint run. A file belongs to its configuration, data and epoch.
    """

    folder: Path
    run: Path
    rounds: int

    def file(self, epoch: int) -> Path:
        return self.folder / f"epoch-{epoch}-rounds-{self.rounds}.npz"

    def origin(self, config: RunConfig, epoch: int) -> str:
        """Return what the measures after an epoch are of; the run has its data's checksums."""
        data = self.run / DATA
        return f"{config.digest()}, data {digest(data) if data.exists() else None}, epoch {epoch}"

    def load(self, config: RunConfig, epoch: int) -> Measures | None:
        """Return the measures after an epoch; None without a file of this run and epoch."""
        return Measures.load(self.file(epoch), self.origin(config, epoch))

    def save(self, measures: Measures, config: RunConfig, epoch: int) -> None:
        measures.save(self.file(epoch), self.origin(config, epoch))

    def stored(self, config: RunConfig, epochs: int) -> list[Measures]:
        """Return the measures after the first `epochs` epochs; raise RunError if some are missing.

        The weights of these epochs are gone, so that they cannot be measured again.
        """
        found = [self.load(config, epoch) for epoch in range(1, epochs + 1)]
        if None in found:
            file = self.file(found.index(None) + 1)
            raise RunError(f"{file}: {self.missing(file)}")
        return [one for one in found if one is not None]

    def missing(self, file: Path) -> str:
        """Return what is expected instead of a missing file, and what to do."""
        begin = file.name.rpartition("-")[0]
        others = sorted(one.stem.rpartition("-")[2] for one in self.folder.glob(f"{begin}-*.npz"))
        if file.exists() or not others:
            return "expected the measures of this run, found none; --overwrite trains it again"
        line = f"expected measures with rounds {self.rounds}, found those with {', '.join(others)}"
        return f"{line}; go on with that number, or --overwrite trains the run again"
