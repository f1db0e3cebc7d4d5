"""The log of a run: one JSON line per step, points of curves, and what all steps together say."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common.files import atomic_path
from multitask.loop.step import StepResult

LOG_EVERY = 10  # steps per point of the training curves
MEASURE_EVERY = 7  # a plain sum measures every seventh step; a prime, to reach all tasks in turn

Line = Mapping[str, Any]  # of `telemetry.jsonl`


class Telemetry:
    """Writer of every step to `telemetry.jsonl`, and of curves to TensorBoard.

    The points of curves are means over ten steps. Without a folder, nothing is written.
    """

    def __init__(self, folder: Path | None, tensorboard: bool = False) -> None:
        self.folder, self.tensorboard = folder, tensorboard
        self.file = (folder or Path()) / "telemetry.jsonl"
        self.first_step = 1  # of this start; later points of an earlier one are computed again
        self._curves: Any = None
        self._recent: dict[str, list[float]] = {}  # values since the last point
        self._step = 0

    def forget_after(self, step: int) -> None:
        """Remove the lines after `step`, at which a run is resumed."""
        self.first_step = step + 1
        if self.folder is None or not self.file.exists():
            return
        with atomic_path(self.file) as new:
            new.write_bytes(b"".join(self.file.read_bytes().splitlines(keepends=True)[:step]))

    def step(self, step: int, result: StepResult, figures: Mapping[str, float]) -> None:
        """Write one step; `figures` are further values of it, such as the norm of the gradient."""
        if self.folder is None:
            return
        line = step_line(result) | dict(figures)
        with self.file.open("a") as file:
            file.write(json.dumps({"step": step} | line) + "\n")
        for name, value in numbers(line, "train/"):
            self._recent.setdefault(name, []).append(value)
        self._step = step
        if step % LOG_EVERY == 0:
            self.point()

    def point(self) -> None:
        """Add a point to every curve: the mean since the last point."""
        self.draw({n: float(np.mean(v)) for n, v in self._recent.items()}, self._step)
        self._recent = {}

    def draw(self, values: Mapping[str, float], step: int) -> None:
        """Pass points of curves to TensorBoard, whose import is slow."""
        if self.tensorboard and self.folder is not None:
            if self._curves is None:
                from torch.utils.tensorboard import SummaryWriter

                folder = str(self.folder / "tensorboard")
                self._curves = SummaryWriter(folder, purge_step=self.first_step)
            for name, value in values.items():
                self._curves.add_scalar(name, value, step)

    def close(self) -> None:
        if self._recent:
            self.point()
        if self._curves is not None:
            self._curves.close()


def read_steps(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a `telemetry.jsonl`."""
    with file.open("rb") as lines:
        yield from map(json.loads, lines)


def numbers(line: Line, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a line with the names of their curves, such as train/losses/sst."""
    for name, value in line.items():
        if isinstance(value, Mapping):
            yield from numbers(value, f"{prefix}{name}/")
        elif not isinstance(value, str):
            yield prefix + name, value


def step_line(result: StepResult) -> dict[str, Any]:
    """Return losses, weights, status and cosines of a step; cosines also for each section."""
    names = result.objectives
    line: dict[str, Any] = {
        "losses": dict(zip(names, result.losses.tolist(), strict=True)),
        "weights": dict(zip(names, result.combined.weights.tolist(), strict=True)),
        "status": result.combined.status,
        "cosines": {},
    }
    if result.grams and len(names) > 1:
        line["cosines"] = cosines(names, np.sum([*result.grams.values()], axis=0))
        line["conflict_rate"] = float(np.mean([c < 0 for c in line["cosines"].values()]))
        if len(result.grams) > 1:
            line["layers"] = {name: cosines(names, gram) for name, gram in result.grams.items()}
    return line


def cosines(names: Sequence[str], gram: np.ndarray) -> dict[str, float]:
    """Return the cosine of each pair of gradients; 0 if one of them is zero."""
    norms = np.sqrt(np.diagonal(gram))
    scale = np.outer(norms, norms)
    with np.errstate(invalid="ignore"):
        found = np.divide(gram, scale, out=np.zeros_like(gram), where=scale != 0)
    return {
        f"{names[j]} and {names[i]}": float(found[i, j])
        for i in range(len(names))
        for j in range(i)
    }


def summary(steps: Iterable[Line]) -> dict[str, Any]:
    """Return what metrics.json says of all steps: the counts of their statuses, and conflicts.

    `conflicts` has the steps, the share of steps in conflict and the mean cosine of each pair.
    """
    statuses: Counter[str] = Counter()
    pairs: dict[str, list[float]] = {}
    for line in steps:
        statuses[line["status"]] += 1
        for pair, cosine in line["cosines"].items():
            pairs.setdefault(pair, []).append(cosine)
    conflicts = {
        pair: {
            "steps": len(found),
            "conflict_rate": round(sum(one < 0 for one in found) / len(found), 4),
            "mean_cosine": round(sum(found) / len(found), 4),
        }
        for pair, found in pairs.items()
    }
    return {"combiner_steps": dict(statuses), "conflicts": conflicts}
