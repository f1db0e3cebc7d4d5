"""Metrics of predictions. scikit-learn and SciPy are imported on first use: they load slowly."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np


def accuracy(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Return the share of correct predictions; of several labels (n, C), the mean over labels."""
    return float(np.mean(np.asarray(predictions) == np.asarray(targets)))


def f1(predictions: np.ndarray, targets: np.ndarray, average: str = "binary") -> float:
    """Return F1 of class 1, of all labels together (`micro`) or the mean of all (`macro`)."""
    from sklearn.metrics import f1_score

    return float(f1_score(targets, predictions, average=average, zero_division=0))


def matthews(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Return Matthews' correlation, or its mean over labels (n, C); 0 if a side has one class."""
    from sklearn.metrics import matthews_corrcoef

    if np.ndim(targets) == 2:
        pairs = zip(np.transpose(predictions), np.transpose(targets), strict=True)
        return float(np.mean([matthews(found, true) for found, true in pairs]))
    if all(len(np.unique(one)) == 1 for one in (predictions, targets)):
        return 0.0
    return float(matthews_corrcoef(targets, predictions))


def correlation(name: str, x: np.ndarray, y: np.ndarray) -> float:
    """Return SciPy's correlation; 0 if it is undefined, as for a constant or a single value."""
    from scipy import stats

    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if any(len(values) < 2 or np.all(values == values[0]) for values in (x, y)):
        return 0.0
    return float(np.nan_to_num(getattr(stats, name)(x, y).statistic))


pearson = partial(correlation, "pearsonr")
spearman = partial(correlation, "spearmanr")  # of the ranks


def mae(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Return the mean absolute error, on the scale of the targets."""
    return float(np.mean(np.abs(np.subtract(predictions, targets, dtype=np.float64))))


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "micro_f1": partial(f1, average="micro"),
    "macro_f1": partial(f1, average="macro"),
    "matthews": matthews,
    "pearson": pearson,
    "spearman": spearman,
    "mae": mae,
}
WORST = {"matthews": -1.0, "pearson": -1.0, "spearman": -1.0, "mae": np.inf}  # the best is 1


def worst_value(metric: str) -> float:
    """Return the worst value of a metric, infinite for an error."""
    return WORST.get(metric, 0.0)


def metric_function(*names: str) -> Callable[[np.ndarray, np.ndarray], dict[str, float]]:
    """Return a function from predictions and targets to these metrics, by name."""
    return lambda predictions, targets: {n: METRICS[n](predictions, targets) for n in names}


OVERALL = "overall"
OVERALL_KEYS = (OVERALL, "overall_plain_mean")  # of `overall`
# The metric of each task in the leaderboard's overall score.
LEADERBOARD = {"sst": "accuracy", "qqp": "accuracy", "sts": "pearson"}


def overall_score(
    sentiment_accuracy: float, paraphrase_accuracy: float, similarity_pearson: float
) -> float:
    """Return the leaderboard's score: the mean, with correlation mapped to [0, 1] (BEES, Eq. 6)."""
    return (sentiment_accuracy + paraphrase_accuracy + (similarity_pearson + 1) / 2) / 3


def mean_score(values: Mapping[str, float], names: Mapping[str, str]) -> float:
    """Return the mean over tasks of their metrics (`names`), scaled to [0, 1] (BEES, Eq. 6)."""
    worst = {task: worst_value(name) for task, name in names.items()}
    return float(np.mean([(values[task] - low) / (1 - low) for task, low in worst.items()]))


def overall(metrics: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return both overall scores if all three CS224N tasks are present, else an empty dict."""
    if not LEADERBOARD.keys() <= metrics.keys():
        return {}
    sst, qqp, sts = (metrics[task][metric] for task, metric in LEADERBOARD.items())
    plain = (sst + qqp + sts) / 3  # which some reports give
    return dict(zip(OVERALL_KEYS, (overall_score(sst, qqp, sts), plain), strict=True))
