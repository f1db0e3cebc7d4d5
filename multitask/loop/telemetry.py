"""The log of a run: one JSON line per step, points of curves, and what all steps together say."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import RunError
from common.files import atomic_write_text, check_regular
from multitask.loop.step import StepResult, whole_gram

LOG_EVERY = 10  # steps per point of the training curves
MEASURE_EVERY = 7  # a plain sum measures every seventh step; a prime, to reach all tasks in turn

Draw = Callable[[Mapping[str, float], int], None]  # values by name of the curve, step
Line = Mapping[str, Any]  # of `telemetry.jsonl`


class Telemetry:
    """Writer of every step to `telemetry.jsonl`, and of means over ten steps to curves.

    `draw` receives the points of curves and their step. Without a folder, nothing is written.
    """

    def __init__(self, folder: Path | None, draw: Draw = lambda values, step: None) -> None:
        self.file = None if folder is None else folder / "telemetry.jsonl"
        self.draw = draw
        self._lines: Any = None
        self._recent: dict[str, list[float]] = {}  # values since the last point
        self._step = 0

    def forget_after(self, step: int) -> bool:
        """Remove the lines after `step`, at which a run is resumed; return if there was a file.

        Unreadable lines, for example after a power cut, are removed, too.
        """
        if self.file is None or not self.file.exists():
            return False
        kept = []
        check_regular(self.file, RunError)
        for raw in self.file.read_bytes().splitlines(keepends=True):
            with suppress(ValueError, KeyError, TypeError):
                line = json.loads(raw)
                if line["step"] <= step and raw.endswith(b"\n"):
                    kept.append(line)
        if len(kept) != step:
            raise RunError(f"{self.file}: expected {step} steps, found {len(kept)}: it is damaged")
        atomic_write_text(self.file, "".join(json.dumps(line) + "\n" for line in kept))
        return True

    def step(self, step: int, result: StepResult, figures: Mapping[str, float]) -> None:
        """Write one step; `figures` are further values of it, such as the norm of the gradient."""
        if self.file is None:
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


def curves(line: Line, figures: Mapping[str, float]) -> dict[str, float]:
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
