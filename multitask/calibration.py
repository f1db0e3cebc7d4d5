"""Calibration of a run: a third of dev is set aside, and calibrates the heads after training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from common.errors import RunError, SettingsError
from common.json_files import read_json, write_json
from multitask.storage.metrics_file import REMEDY
from multitask.storage.run_folder import CALIBRATION
from tasks.base import Task
from tasks.calibration import Calibration, fewest_scores, report
from tasks.data import Split
from tasks.splits import deal

SHARE = 1 / 3  # of dev
COVERAGE = 0.9  # at which sets and intervals are measured


def with_calibration_examples(task: Task, dev: Split) -> Split:
    """Return a dev split with a third of its examples marked for calibration.

    They do not depend on a run's random seed, and examples with equal tokens stay together. Raise
    SettingsError if there are too few examples.
    """
    count = len(dev.examples)
    texts = np.stack([tokens.distinct()[1] for tokens in dev.tokens], axis=1)
    _, known = np.unique(texts, axis=0, return_inverse=True)
    order = np.random.default_rng(0).permutation(count)
    rows = deal(known.reshape(-1), order, (round(SHARE * count),))[1]
    if len(rows) < (fewest := fewest_scores(COVERAGE)):
        line = f"expected {fewest} or more in a third of dev, found {len(rows)} of {count} examples"
        raise SettingsError(f"calibrate: {task.name}: {line}")
    return replace(dev, calibrates=np.isin(np.arange(count), rows))


def calibrate(
    tasks: Mapping[str, Task], dev: Mapping[str, Split], scores: Mapping[str, np.ndarray]
) -> tuple[dict[str, Calibration], dict[str, dict[str, float]]]:
    """Return the calibration of each task that has examples for it, and measures on the others."""
    found, measures = {}, {}
    for name, task in tasks.items():
        marked, calibrator = dev[name].calibrates, task.kind.calibrator
        if marked is None or calibrator is None:
            continue
        targets = dev[name].examples.targets
        assert targets is not None, "dev has labels"
        found[name] = calibrator.fit(scores[name][marked], targets[marked])
        others = scores[name][~marked], targets[~marked]
        measures[name] = report(calibrator, found[name], *others, COVERAGE)
    return found, measures


def write_calibration(folder: Path, found: Mapping[str, Calibration]) -> None:
    """Write the calibration of each task."""
    content = {
        name: {
            "temperature": one.temperature,
            "nonconformity": one.nonconformity.tolist(),
            "thresholds": None if one.thresholds is None else one.thresholds.tolist(),
        }
        for name, one in found.items()
    }
    write_json(folder / CALIBRATION, {"tasks": content})


class Stored(msgspec.Struct):
    """The calibration of a task in the file."""

    temperature: float | None
    nonconformity: list[float]
    thresholds: list[float] | None = None

    @property
    def calibration(self) -> Calibration:
        thresholds = None if self.thresholds is None else np.array(self.thresholds)
        return Calibration(self.temperature, np.array(self.nonconformity), thresholds)


def read_calibration(folder: Path) -> dict[str, Calibration]:
    """Return the calibration of each task of a run or an export; none if it has no file.

    Raise RunError for a file with other content.
    """
    file = folder / CALIBRATION
    if not file.exists():
        return {}
    content = read_json(file, RunError)
    try:
        tasks = msgspec.convert(content.get("tasks"), dict[str, Stored])
    except msgspec.ValidationError as error:
        raise RunError(f"{file}: expected a calibration, found: {error}; {REMEDY}") from error
    return {name: one.calibration for name, one in tasks.items()}
