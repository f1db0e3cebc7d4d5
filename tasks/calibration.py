"""Probabilities that can be trusted: temperature scaling, calibration error, conformal prediction.

The functions take probabilities (n, C) of classes with targets (n,), or those of several labels
with targets (n, C), or numbers (n,). SciPy is imported on first use. No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np

from tasks.metrics import METRICS

BINS = 15  # of equal width (Guo et al., 2017, section 2)
TEMPERATURES = 0.05, 20.0  # between which the best one is sought
TINY = float(np.finfo(np.float32).tiny)  # in place of probabilities that float32 rounds to 0
HALF = 0.5  # threshold of a label, unless there are at least so many examples with the label:
FEWEST_OF_LABEL = 5
ROUNDING = 1e-9  # of (n + 1) * coverage, which may be a whole number


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


class Reliability(NamedTuple):
    """Counts, mean confidences and accuracies (bins,); the means of an empty bin are 0."""

    counts: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray

    @property
    def error(self) -> float:
        """The expected calibration error, sum(count / n * |accuracy - confidence|).

        Naeini et al., 2015; Guo et al., 2017, Eq. 3.
        """
        gaps = np.abs(self.accuracy - self.confidence)
        return float(np.sum(self.counts * gaps) / self.counts.sum())


def reliability(probabilities: np.ndarray, targets: np.ndarray, bins: int = BINS) -> Reliability:
    """Return the table of a reliability diagram of probabilities (n, C) and targets (n,).

    The confidence of an example is its largest probability. Bin b holds confidences above b / bins
    and at most (b + 1) / bins.
    """
    confidence = probabilities.max(1).astype(np.float64)
    right = probabilities.argmax(1) == targets
    place = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    sums = [np.bincount(place, values, bins) for values in (confidence, right)]
    return Reliability(counts, *(one / np.maximum(counts, 1) for one in sums))


def fewest_scores(coverage: float) -> int:
    """Return how many calibration examples a coverage needs: ceil((n + 1) coverage) <= n."""
    return max(1, ceil(coverage / (1 - coverage) - ROUNDING))


def conformal_quantile(scores: np.ndarray, coverage: float) -> float:
    """Return the ceil((n + 1) coverage)-th smallest of n scores.

    A new score of the same distribution is at most this number with a probability of at least
    `coverage`, over the draw of all n + 1 (Vovk et al., 2005; Angelopoulos and Bates, 2023, section
    1). Raise ValueError for too few scores.
    """
    count, wanted = len(scores), fewest_scores(coverage)
    if count < wanted:
        raise ValueError(f"expected {wanted} calibration examples or more, found {count}")
    return float(np.sort(scores)[max(1, ceil((count + 1) * coverage - ROUNDING)) - 1])


def best_thresholds(probabilities: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the threshold of each label with the highest F1 on n examples, (C,).

    It lies in the middle between two probabilities; of equally good ones it is the nearest to one
    half. It is one half for labels of fewer than `FEWEST_OF_LABEL` examples (Yang, 2001, "A study
    of thresholding strategies": thresholds of rare labels overfit).
    """
    found = np.full(targets.shape[1], HALF)
    for label, (values, true) in enumerate(zip(probabilities.T, targets.T, strict=True)):
        if true.sum() < FEWEST_OF_LABEL:
            continue
        order = np.argsort(-values.astype(np.float64), kind="stable")
        ranked = np.append(values[order].astype(np.float64), 0.0)
        chosen = np.arange(1, len(values) + 1)  # number of examples above a threshold
        f1 = 2 * np.cumsum(true[order]) / (chosen + true.sum())
        middle = (ranked[:-1] + ranked[1:]) / 2
        f1[ranked[:-1] == ranked[1:]] = -1  # no threshold lies between equal probabilities
        best = np.flatnonzero(f1 >= f1.max() - ROUNDING)
        found[label] = middle[best[np.argmin(np.abs(middle[best] - HALF))]]
    return found


@dataclass(frozen=True)
class Calibrator:
    """How the scores of a kind of task are calibrated.

    `decisions(scores, targets)` -> probabilities (m, K) and targets (m,) of m decisions for one of
    K classes, which a temperature calibrates; None for numbers. `undo(decided, scores)` returns
    scaled decisions in the shape of the scores. `nonconformity(scores, targets)` -> (n,), larger
    for targets that fit the scores less. `region(scores, quantile)` holds the values whose
    nonconformity is at most the quantile: (n, C) truth values of classes or labels, or (n, 2) ends
    of intervals. `thresholds(scores, targets)` are those above which labels are predicted, (C,).
    """

    nonconformity: Callable[[np.ndarray, np.ndarray], np.ndarray]
    region: Callable[[np.ndarray, float], np.ndarray]
    decisions: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    undo: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    thresholds: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def fit(self, scores: np.ndarray, targets: np.ndarray) -> Calibration:
        """Return the calibration by n examples."""
        temperature = None
        if self.decisions is not None:
            temperature = fit_temperature(*self.decisions(scores, targets))
        thresholds = None if self.thresholds is None else self.thresholds(scores, targets)
        return Calibration(temperature, np.sort(self.nonconformity(scores, targets)), thresholds)

    def scaled(self, scores: np.ndarray, temperature: float | None) -> np.ndarray:
        """Return the probabilities at a temperature, in the shape and type of the scores."""
        if temperature is None or self.decisions is None or self.undo is None:
            return scores
        decided, _ = self.decisions(scores, np.zeros(scores.shape))
        return self.undo(temperature_scaled(decided, temperature), scores).astype(scores.dtype)

    def reliability(
        self, scores: np.ndarray, targets: np.ndarray, temperature: float = 1.0
    ) -> Reliability:
        """Return the table of a reliability diagram at a temperature."""
        assert self.decisions is not None, "expected probabilities"
        decided, right = self.decisions(scores, targets)
        return reliability(temperature_scaled(decided, temperature), right)


@dataclass(frozen=True)
class Calibration:
    """The calibration of a task: its temperature, None for numbers, and n sorted nonconformities.

    The nonconformities are those of scores before scaling: the temperature depends on the
    calibration examples, and sets of scaled probabilities would lose their guarantee. So are the
    `thresholds` of several labels (C,), with the highest F1 on the calibration examples.
    """

    temperature: float | None
    nonconformity: np.ndarray
    thresholds: np.ndarray | None = None


def report(
    calibrator: Calibrator,
    found: Calibration,
    scores: np.ndarray,
    targets: np.ndarray,
    coverage: float,
) -> dict[str, float]:
    """Return measures of a calibration on other examples than those of `found`.

    These are the expected calibration error before and after scaling, F1 of several labels at one
    half and at their thresholds, the share of targets that
    are in their set or interval, and the mean number of classes or labels in a set, or the mean
    width of an interval, before it is cut to the scale of the task.
    """
    result: dict[str, float] = {
        "calibration_examples": len(found.nonconformity),
        "scored_examples": len(targets),
    }
    if found.temperature is not None:
        after = calibrator.reliability(scores, targets, found.temperature)
        result["temperature"] = found.temperature
        result["ece_before"] = calibrator.reliability(scores, targets).error
        result["ece_after"] = after.error
    if found.thresholds is not None:
        for name, thresholds in (("at_half", HALF), ("at_thresholds", found.thresholds)):
            predicted = (scores > thresholds).astype(np.int64)
            result[f"micro_f1_{name}"] = METRICS["micro_f1"].score(predicted, targets)
    quantile = conformal_quantile(found.nonconformity, coverage)
    region = calibrator.region(scores, quantile)
    inside = calibrator.nonconformity(scores, targets) <= quantile
    result |= {"nominal_coverage": coverage, "coverage": float(inside.mean())}
    if region.dtype == bool:
        return result | {"mean_set_size": float(region.sum(1).mean())}
    return result | {"mean_width": float((region[:, 1] - region[:, 0]).mean())}


def lac_scores(probabilities: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return 1 - p of the target (n,), the least ambiguous sets' score (Sadinle et al., 2019)."""
    rows = np.arange(len(probabilities))
    return 1 - probabilities[rows, targets.astype(np.int64)].astype(np.float64)


def probable(probabilities: np.ndarray, quantile: float) -> np.ndarray:
    """Return (n, C): the classes or labels whose 1 - p is at most the quantile."""
    return 1 - probabilities.astype(np.float64) <= quantile


def rarest_label(probabilities: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the largest 1 - p of the labels that an example has (n,); 0 if it has none.

    A set of all labels up to the quantile then holds every label of an example with the nominal
    probability (Cauchois et al., 2021, section 3).
    """
    return np.max(np.where(targets > 0, 1 - probabilities.astype(np.float64), 0.0), axis=1)


def label_decisions(
    probabilities: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each label of each example (n, C) as a decision for one of two classes (n C, 2)."""
    flat = probabilities.astype(np.float64).reshape(-1)
    return np.stack([1 - flat, flat], axis=1), targets.reshape(-1)


def residuals(values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return |y - value| (n,), float64 (Lei et al., 2018, section 2)."""
    return np.abs(targets.astype(np.float64) - values.astype(np.float64))


def around(values: np.ndarray, quantile: float) -> np.ndarray:
    """Return the ends (n, 2) of intervals around values."""
    middle = values.astype(np.float64)
    return np.stack([middle - quantile, middle + quantile], axis=1)


CLASSES = Calibrator(
    lac_scores, probable, lambda scores, targets: (scores, targets), lambda decided, scores: decided
)
LABELS = Calibrator(
    rarest_label,
    probable,
    label_decisions,
    lambda decided, scores: decided[:, 1].reshape(scores.shape),
    best_thresholds,
)
NUMBERS = Calibrator(residuals, around)
