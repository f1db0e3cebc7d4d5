"""The log of a run: one JSON line per step, points of curves, and conflicts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import RunError
from common.files import atomic_write_text, check_regular
from multitask.gram_matrices import cosines_of, whole_gram
from multitask.loop.step import StepResult

LOG_EVERY = 10  # steps per point of the training curves
MEASURE_EVERY = 7  # a plain sum measures every seventh step; a prime, to reach all tasks in turn


Draw = Callable[[Mapping[str, float], int], None]  # values by name of the curve, step


class Telemetry:
    """Writer of every step to `telemetry.jsonl`, and of means over ten steps to curves.

    `draw` receives the points of curves and their step. Without a folder, nothing is written.
    """

    def __init__(self, folder: Path | None, draw: Draw = lambda values, step: None) -> None:
        self.folder, self.draw = folder, draw
        self._lines: Any = None
        self._recent: dict[str, list[float]] = {}  # values since the last point
        self._step = 0

    @property
    def file(self) -> Path:
        assert self.folder is not None
        return self.folder / "telemetry.jsonl"

    @property
    def written(self) -> bool:
        """Whether the file of an earlier start exists."""
        return self.folder is not None and self.file.exists()

    def forget_after(self, step: int) -> None:
        """Remove the lines after `step`, at which a run is resumed.

        Unreadable lines, for example after a power cut, are removed, too; their number is printed.
        """
        if not self.written:
            return
        kept, unreadable = [], 0
        check_regular(self.file, RunError)
        for raw in self.file.read_bytes().splitlines(keepends=True):
            try:
                line = json.loads(raw)
                if line["step"] <= step and raw.endswith(b"\n"):
                    kept.append(line)
            except (ValueError, KeyError, TypeError):
                unreadable += 1
        if unreadable:
            print(f"{self.file}: {unreadable} unreadable lines are left out", flush=True)
        atomic_write_text(self.file, "".join(json.dumps(line) + "\n" for line in kept))

    def step(self, step: int, result: StepResult, figures: Mapping[str, float]) -> None:
        """Write one step; `figures` are further values of it, such as the norm of the gradient."""
        if self.folder is None:
            return
        line = step_line(result) | {"step": step} | dict(figures)
        if self._lines is None:
            self._lines = self.file.open("a")
        self._lines.write(json.dumps(line) + "\n")
        for name, value in curves(line, figures).items():
            self._recent.setdefault(name, []).append(value)
        self._step = step
        if step % LOG_EVERY == 0:
            self.point()

    def point(self) -> None:
        """Add a point to every curve: the mean since the last point."""
        self.draw({n: float(np.mean(v)) for n, v in self._recent.items()}, self._step)
        self._recent = {}

    def flush(self) -> None:
        """Write the steps to the disk, before a checkpoint that counts them."""
        if self._lines is not None:
            self._lines.flush()
            os.fsync(self._lines.fileno())

    def close(self) -> None:
        if self._recent:
            self.point()
        if self._lines is not None:
            self._lines.close()
        self._lines = None


def read_steps(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a `telemetry.jsonl`; an incomplete last line is left out.

    Raise RunError with file and line for a line that is no step.
    """
    check_regular(file, RunError)
    with file.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            if raw.endswith(b"\n"):
                try:
                    line = json.loads(raw)
                except ValueError as error:
                    raise RunError(f"{file}, line {number}: expected a step: {error}") from error
                if not isinstance(line, dict) or "step" not in line:
                    raise RunError(f"{file}, line {number}: expected a step, found none")
                yield line


def curves(line: Mapping[str, Any], figures: Mapping[str, float]) -> dict[str, float]:
    """Return the points of curves by name: train/sst/loss, train/sst and qqp/cosine, ..."""
    points = {
        f"train/{name}/{kind}": value
        for kind, many in (("loss", "losses"), ("weight", "weights"), ("cosine", "cosines"))
        for name, value in line[many].items()
    }
    for layer, pairs in line.get("layers", {}).items():
        points |= {f"layers/{pair}/{layer}": value for pair, value in pairs.items()}
    if line["cosines"]:
        points["train/conflict_rate"] = line["conflict_rate"]
    return points | {f"train/{name}": value for name, value in figures.items()}


def step_line(result: StepResult) -> dict[str, Any]:
    """Return losses, weights, status and cosines of a step; cosines also for each section."""
    names = result.objectives
    weights = result.combined.weights.tolist()
    line: dict[str, Any] = {
        "losses": dict(zip(names, result.losses.tolist(), strict=True)),
        "weights": dict(zip(names, weights, strict=True)),
        "status": result.combined.status,
        "cosines": {},
    }
    if result.grams and len(names) > 1:
        line["cosines"] = cosines(names, whole_gram(result.grams))
        line["conflict_rate"] = float(np.mean([c < 0 for c in line["cosines"].values()]))
        if len(result.grams) > 1:
            line["layers"] = {name: cosines(names, gram) for name, gram in result.grams.items()}
    return line


def cosines(names: tuple[str, ...], gram: np.ndarray) -> dict[str, float]:
    """Return the cosine of each pair of gradients; 0 if one of them is zero."""
    found = cosines_of(gram)
    return {
        f"{names[j]} and {names[i]}": float(found[i, j])
        for i in range(len(names))
        for j in range(i)
    }


def count_conflicts(counts: dict[str, list[float]], result: StepResult) -> None:
    """Add a step to `counts`: pair -> [steps with the pair, conflicts, sum of cosines]."""
    if not result.grams:
        return
    for pair, cosine in cosines(result.objectives, whole_gram(result.grams)).items():
        steps, conflicts, total = counts.get(pair, (0, 0, 0.0))
        counts[pair] = [steps + 1, conflicts + (cosine < 0), total + cosine]


def conflict_summary(counts: Mapping[str, list[float]]) -> dict[str, dict[str, float]]:
    """Return the steps, the share of steps in conflict and the mean cosine of each pair."""
    return {
        pair: {
            "steps": int(steps),
            "conflict_rate": round(conflicts / steps, 4),
            "mean_cosine": round(total / steps, 4),
        }
        for pair, (steps, conflicts, total) in counts.items()
    }
