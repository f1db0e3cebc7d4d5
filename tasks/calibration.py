"""Calibration: a temperature of each head of classes, fitted on dev (Guo et al., 2017)."""

from collections.abc import Mapping

import numpy as np

from tasks.base import Task
from tasks.data import Split

TEMPERATURES = 0.05, 20.0  # between which the best one is sought
TINY = float(np.finfo(np.float32).tiny)  # in place of probabilities that float32 rounds to 0


def calibrate(
    tasks: Mapping[str, Task], dev: Mapping[str, Split], scores: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """Return the temperature of each head of classes."""
    targets = {name: dev[name].examples.targets for name, one in tasks.items() if one.kind.classes}
    return {n: fit_temperature(scores[n], t) for n, t in targets.items() if t is not None}


def temperature_scaled(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """Return softmax(log p / T) of probabilities (n, C), which is that of logits / T (Eq. 9)."""
    from scipy.special import softmax

    logs = np.log(np.maximum(probabilities, TINY, dtype=np.float64))
    return np.asarray(softmax(logs / temperature, axis=1))


def fit_temperature(probabilities: np.ndarray, targets: np.ndarray) -> float:
    """Return the temperature with the smallest negative log-likelihood of targets (n,).

    The likelihood is concave in 1 / T. Without errors it rises as T falls to 0, and T is 1.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    logs = np.log(np.maximum(probabilities, TINY, dtype=np.float64))
    own = logs[np.arange(len(logs)), targets.astype(np.int64)]
    if (own == logs.max(1)).all():
        return 1.0

    def loss(log_temperature: float) -> float:
        inverse = np.exp(-log_temperature)
        return float(np.mean(logsumexp(inverse * logs, axis=1) - inverse * own))

    bounds = tuple(np.log(TEMPERATURES))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))
