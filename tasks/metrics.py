"""Scores of predictions. scikit-learn and SciPy are imported when first used: they load slowly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np


def accuracy(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Share of the predictions that are right."""
    return float(np.mean(np.asarray(predictions) == np.asarray(targets)))


def f1(predictions: np.ndarray, targets: np.ndarray, average: str = "binary") -> float:
    """F1 of class 1 (`binary`) or the mean over the classes (`macro`); 0 where undefined."""
    from sklearn.metrics import f1_score

    return float(f1_score(targets, predictions, average=average, zero_division=0))


def matthews(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Matthews' correlation of classes; 0 where either side has only one."""
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(targets, predictions))


def pearson(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Linear correlation; 0, not NaN, where either side is constant."""
    from scipy.stats import pearsonr

    if is_constant(predictions) or is_constant(targets):
        return 0.0
    return finite(pearsonr(as_float64(predictions), as_float64(targets)).statistic)


def spearman(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Rank correlation; 0, not NaN, where either side is constant."""
    from scipy.stats import spearmanr

    if is_constant(predictions) or is_constant(targets):
        return 0.0
    return finite(spearmanr(as_float64(predictions), as_float64(targets)).statistic)


MetricName = Literal["accuracy", "f1", "macro_f1", "matthews", "pearson", "spearman"]


class Metric(NamedTuple):
    """A score of predictions and targets, at worst `worst` and at best 1."""

    score: Callable[[np.ndarray, np.ndarray], float]
    worst: float


METRICS: dict[str, Metric] = {  # by the names that tasks give them
    "accuracy": Metric(accuracy, 0.0),
    "f1": Metric(f1, 0.0),
    "macro_f1": Metric(partial(f1, average="macro"), 0.0),
    "matthews": Metric(matthews, -1.0),
    "pearson": Metric(pearson, -1.0),
    "spearman": Metric(spearman, -1.0),
}


FURTHER = {"overall": 0.0, "overall_plain_mean": -1 / 3, "f1_by_class": 0.0}  # at worst
ROUNDING = 1e-6


def impossible(found: Any, name: str = "") -> str | None:
    """What cannot be among the figures of a run, as JSON, in a clause; None if nothing is wrong.

    Every number is finite, and a metric's, or each in its list, between its worst value and 1.
    """
    if isinstance(found, Mapping):
        return next((wrong for key, one in found.items() if (wrong := impossible(one, key))), None)
    if isinstance(found, list):
        return next((wrong for one in found if (wrong := impossible(one, name))), None)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    if not np.isfinite(found):
        return f"{name}: expected a finite number, found {found}"
    worst = METRICS[name].worst if name in METRICS else FURTHER.get(name)
    if worst is not None and not worst - ROUNDING <= found <= 1 + ROUNDING:
        return f"{name}: expected a number from {worst:.3g} to 1, found {found:g}"
    return None


def measured(*names: str) -> Callable[[np.ndarray, np.ndarray], dict[str, float]]:
    """What gives these metrics of predictions and targets, by name."""
    return lambda predictions, targets: {
        name: METRICS[name].score(predictions, targets) for name in names
    }


def overall_score(
    sentiment_accuracy: float, paraphrase_accuracy: float, similarity_pearson: float
) -> float:
    """The leaderboard's score: correlation moved to [0, 1], then the mean (BEES, Eq. 6)."""
    return (sentiment_accuracy + paraphrase_accuracy + (similarity_pearson + 1) / 2) / 3


def overall_plain_mean(
    sentiment_accuracy: float, paraphrase_accuracy: float, similarity_pearson: float
) -> float:
    """The mean of the three figures as they are, as some reports give it."""
    return (sentiment_accuracy + paraphrase_accuracy + similarity_pearson) / 3


# The main metric of each type of task, which selects the best epoch.
MAIN_METRICS = {"classification": "accuracy", "similarity": "pearson"}
# The main metric of each task, of which the leaderboard makes its overall score.
LEADERBOARD = {"sst": "accuracy", "qqp": "accuracy", "sts": "pearson"}


def overall(metrics: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Both overall scores where all three CS224N tasks are there, else nothing."""
    if not LEADERBOARD.keys() <= metrics.keys():
        return {}
    figures = [metrics[task][metric] for task, metric in LEADERBOARD.items()]
    return {
        "overall": overall_score(*figures),
        "overall_plain_mean": overall_plain_mean(*figures),
    }


def as_float64(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float64)


def is_constant(values: np.ndarray) -> bool:
    values = as_float64(values)
    return len(values) < 2 or bool(np.all(values == values[0]))


def finite(value: float) -> float:
    """0 for a NaN that rounding makes of nearly constant values."""
    return float(value) if np.isfinite(value) else 0.0
