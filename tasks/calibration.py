"""Calibration: a temperature of each head, fitted on dev (Guo et al., 2017).

The functions take probabilities (n, C) of classes with targets (n,). SciPy is imported on first
use.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tasks.base import Task
from tasks.data import Split

BINS = 15  # of equal width (Guo et al., 2017, section 2)
TEMPERATURES = 0.05, 20.0  # between which the best one is sought
TINY = float(np.finfo(np.float32).tiny)  # in place of probabilities that float32 rounds to 0


def calibrate(
    tasks: Mapping[str, Task], dev: Mapping[str, Split], scores: Mapping[str, np.ndarray]
) -> dict[str, dict[str, float]]:
    """Return the temperature of each head of classes or labels, and its calibration errors."""
    found = {}
    for name, task in tasks.items():
        values, targets = scores[name], dev[name].examples.targets
        if task.kind.columns is None or targets is None:
            continue
        if task.kind.labels is not None:
            values, targets = label_decisions(values), targets.reshape(-1)
        temperature = fit_temperature(values, targets)
        found[name] = {
            "temperature": temperature,
            "ece_before": calibration_error(values, targets),
            "ece_after": calibration_error(temperature_scaled(values, temperature), targets),
        }
    return found


def scaled(probabilities: np.ndarray, temperature: float, labels: bool) -> np.ndarray:
    """Return probabilities (n, C) of classes, or of several `labels`, at a temperature."""
    if not labels:
        return temperature_scaled(probabilities, temperature).astype(probabilities.dtype)
    found = temperature_scaled(label_decisions(probabilities), temperature)[:, 1]
    return found.reshape(probabilities.shape).astype(probabilities.dtype)


def label_decisions(probabilities: np.ndarray) -> np.ndarray:
    """Return each of several labels (n, C) as a decision for one of two classes (n C, 2)."""
    flat = probabilities.astype(np.float64).reshape(-1)
    return np.stack([1 - flat, flat], axis=1)


def temperature_scaled(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """Return softmax(log p / T) of probabilities (n, C), float64 (Guo et al., 2017, Eq. 9).

    This is softmax(z / T) of the logits z, for log p differs from z by a constant per example.
    """
    from scipy.special import softmax

    return np.asarray(softmax(log_of(probabilities) / temperature, axis=1))


def log_of(probabilities: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(np.asarray(probabilities, np.float64), TINY))


def fit_temperature(probabilities: np.ndarray, targets: np.ndarray) -> float:
    """Return the temperature with the smallest negative log-likelihood of targets (n,).

    The likelihood is concave in 1 / T. If every target has the largest probability of its example,
    it rises for ever as T falls to 0, and the temperature is 1.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    logs = log_of(probabilities)
    own = logs[np.arange(len(logs)), targets.astype(np.int64)]
    if (own == logs.max(1)).all():
        return 1.0

    def loss(log_temperature: float) -> float:
        inverse = np.exp(-log_temperature)
        return float(np.mean(logsumexp(inverse * logs, axis=1) - inverse * own))

    bounds = tuple(np.log(TEMPERATURES))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))


def calibration_error(probabilities: np.ndarray, targets: np.ndarray) -> float:
    """Return the expected calibration error, sum(count / n * |accuracy - confidence|).

    The confidence of an example is its largest probability. Bin b holds confidences above b / bins
    and at most (b + 1) / bins (Naeini et al., 2015; Guo et al., 2017, Eq. 3).
    """
    confidence = probabilities.max(1).astype(np.float64)
    right = probabilities.argmax(1) == targets
    place = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    gaps = np.bincount(place, right - confidence, BINS)
    return float(np.abs(gaps).sum() / len(targets))
