"""Calibration of a run: a temperature of each head, fitted on dev after training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from common.errors import RunError
from common.files import write_json
from multitask.run_folder import CALIBRATION, RunFolder
from tasks.base import Task
from tasks.calibration import (
    calibration_error,
    fit_temperature,
    label_decisions,
    temperature_scaled,
)
from tasks.data import Split


def calibrate(
    tasks: Mapping[str, Task], dev: Mapping[str, Split], scores: Mapping[str, np.ndarray]
) -> dict[str, dict[str, float]]:
    """Return the temperature of each head of classes or labels, and its calibration errors."""
    found = {}
    for name, task in tasks.items():
        if task.auxiliary or task.kind.columns is None:
            continue
        values, targets = scores[name], dev[name].examples.targets
        assert targets is not None, "dev has labels"
        if task.kind.labels is not None:
            values, targets = label_decisions(values), targets.reshape(-1)
        temperature = fit_temperature(values, targets)
        found[name] = {
            "temperature": temperature,
            "ece_before": calibration_error(values, targets),
            "ece_after": calibration_error(temperature_scaled(values, temperature), targets),
        }
    return found


def write_temperatures(folder: Path, temperatures: Mapping[str, float]) -> None:
    """Write the temperature of each task."""
    write_json(folder / CALIBRATION, temperatures)


def read_temperatures(folder: Path) -> dict[str, float]:
    """Return the temperature of each task of a run or an export; none if it has no file.

    Raise RunError for a file with other content.
    """
    file = folder / CALIBRATION
    try:
        return msgspec.convert(RunFolder(folder).read(CALIBRATION), dict[str, float])
    except msgspec.ValidationError as error:
        raise RunError(f"{file}: expected temperatures, found: {error}; train again") from error
