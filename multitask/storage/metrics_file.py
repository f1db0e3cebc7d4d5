"""The content of a run's `metrics.json`, and its reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import msgspec

from common.errors import RunError
from common.json_files import read_json
from tasks.metrics import OVERALL_KEYS, metric_error

REMEDY = "restore it, or run the command again with --overwrite"
Figures = dict[str, dict[str, float] | float]  # per task, and overall


class StoredMetrics(TypedDict, total=False):
    """The content of `metrics.json`; further keys are not checked."""

    dev: Figures
    test: dict[str, dict[str, float]]
    by_class: dict[str, dict[str, dict[str, dict[str, float]]]]
    history: list[dict[str, Any]]
    members: dict[str, dict[str, Any]]
    cut_texts: dict[str, tuple[int, int]]
    calibration: dict[str, dict[str, float]]
    best_epoch: int
    epochs: int
    steps: int
    combiner_steps: dict[str, int]
    training_seconds: float
    examples_per_second: float
    seconds: float


# Those with values of metrics. Numbers of texts and steps are none, whatever their task is named.
MEASURED = ("dev", "test", "by_class", "history", "members", "calibration")
OF_TRAINING = (
    *("dev", "best_epoch", "epochs", "steps", "combiner_steps"),
    *("training_seconds", "examples_per_second", "seconds"),
)


def read_metrics(file: Path) -> dict[str, Any]:
    """Read a `metrics.json`; raise RunError if it has other content or an impossible figure."""
    found = read_json(file, RunError)
    try:
        msgspec.convert(found, StoredMetrics)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise RunError(f"{file}: expected the metrics of a run, found: {error}") from error
    for task, metrics in found.get("dev", {}).items():
        if isinstance(metrics, float) != (task in OVERALL_KEYS):
            raise RunError(f"{file}: dev: {task}: expected a run's metrics, found {metrics!r}")
    if not all({"epoch", "dev"} <= entry.keys() for entry in found.get("history", [])):
        raise RunError(f"{file}: history: expected epochs with their dev scores, found others")
    if wrong := metric_error({key: found[key] for key in MEASURED if key in found}):
        raise RunError(f"{file}: {wrong}; {REMEDY}")
    return found
