"""Calibrated predictions: scaled probabilities, and sets or intervals for a coverage.

This module does not import PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from common.errors import RunError, SettingsError
from tasks.calibration import Calibration, conformal_quantile

if TYPE_CHECKING:
    from serving.prediction import Prediction
    from tasks.base import Task

SEPARATORS = ("|", ";", "/", " // ", " ||| ")  # of the labels of a set


def quantiles_of(
    calibrations: Mapping[str, Calibration], tasks: Sequence[str], coverage: float | None
) -> dict[str, float]:
    """Return the largest nonconformity in a set or interval of each task; none without coverage.

    Raise SettingsError if a task is not calibrated, or by too few examples for this coverage.
    """
    if coverage is None:
        return {}
    if not isinstance(coverage, Real) or not 0 < coverage < 1:
        raise SettingsError(f"coverage: expected a number above 0 and below 1, found {coverage!r}")
    found = {}
    for task in tasks:
        if task not in calibrations:
            expected = "a task calibrated by training with --calibrate"
            if calibrations:
                expected = f"calibrated tasks, {', '.join(calibrations)}"
            raise SettingsError(f"coverage: expected {expected}, found {task}")
        try:
            found[task] = conformal_quantile(calibrations[task].nonconformity, coverage)
        except ValueError as error:
            raise SettingsError(f"coverage {coverage:g}: {task}: {error}") from error
    return found


def calibrated(
    plain: Prediction,
    task: Task,
    scores: np.ndarray,
    calibration: Calibration | None,
    quantile: float | None,
) -> Prediction:
    """Return a prediction with scaled probabilities, and with its region if there is a quantile.

    A class stays as it is, for scaling does not change the order of the probabilities. Of several
    labels, those above their thresholds are predicted.
    """
    calibrator = task.kind.calibrator
    if calibration is None or calibrator is None:
        return plain
    if plain.probabilities is not None:
        scaled = calibrator.scaled(scores, calibration.temperature)
        plain = replace(plain, probabilities=scaled)
    if calibration.thresholds is not None:
        from serving.prediction import with_labels  # imports PyTorch, which scores needed

        plain = with_labels(task, plain, (scores > calibration.thresholds).astype(np.int64))
    if quantile is None:
        return plain
    region = calibrator.region(scores, quantile)
    if plain.probabilities is not None:
        return replace(plain, sets=region)
    return replace(plain, intervals=shown(task, region))


def shown(task: Task, ends: np.ndarray) -> np.ndarray:
    """Return the ends (n, 2) of intervals as the task's files show them, within their scale."""
    if task.output is None:
        return ends
    if task.output.scale is not None:
        ends = np.clip(ends, *task.output.scale)
    show = task.output.show
    rows = [[float(show(end)) for end in row] for row in ends.astype(np.float32)]
    return np.array(rows).reshape(-1, 2)


def region_columns(found: Prediction) -> list[str]:
    """Return the names of the columns of a set or an interval; none without either."""
    if found.sets is not None:
        return [f"{found.task} set"]
    return [] if found.intervals is None else [f"{found.task} low", f"{found.task} high"]


def region_fields(found: Prediction, row: int) -> list[str]:
    """Return the set of a row, `low|normal`, or the ends of its interval; blank without a text.

    A set whose labels contain `|` has another separator, the first of `SEPARATORS` that none has.
    """
    if found.empty[row]:
        return [""] * len(region_columns(found))
    if found.sets is not None:
        names = zip(found.class_names, found.sets[row], strict=True)
        return [separator_of(found.class_names).join(name for name, inside in names if inside)]
    return [] if found.intervals is None else [str(end) for end in found.intervals[row].tolist()]


@cache
def separator_of(names: tuple[str, ...]) -> str:
    """Return a text between labels that is in none of them; raise RunError without one."""
    for one in SEPARATORS:
        if not any(one in name for name in names):
            return one
    raise RunError(f"coverage: expected labels without one of {' '.join(SEPARATORS)}, found none")
