"""Faults that show in the values of a prediction file, without or beside the labels.

Each function yields (kind of `fault_kinds.KINDS`, evidence). Differences of scores count only if
they are large and at least `SURE` standard errors, so that chance causes no finding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reports.submissions.fault_kinds import Faults
from tasks.base import Task
from tasks.metrics import accuracy, matthews, pearson

LEAST = 20  # rows; shorter files are not checked for their distribution of values
ALMOST_ALL = 0.99
SURE = 4.0  # standard errors
FAR = 0.1  # of an accuracy or a correlation
NO_RELATION = 2.0  # standard errors below which a correlation may be chance
MOST_SHOWN = 6  # values in a message
OUTSIDE, MARGIN = 0.05, 0.1  # share of values outside of the scale, widened by a tenth
# Above the best published scores by a margin: SST-5 0.60, QQP 0.93, STS-B 0.93.
IMPLAUSIBLE = {"sst": 0.70, "qqp": 0.97, "sts": 0.97}
YES_NO = (8505, 3919)  # GPT-2's tokens, written by CS224N's starter code since 2025


class ClassesRead(NamedTuple):
    """Classes (n,) as a file has them, or None if it has others, and the faults found.

    All are classes of the task after adding `step`, which is 1 or -1 for a file that is shifted.
    """

    values: np.ndarray | None
    faults: list[tuple[str, str]]
    step: int = 0


def class_values(values: np.ndarray, classes: int) -> ClassesRead:
    """Convert values (n,) or (n, C) to classes."""
    if values.ndim == 2:
        width = values.shape[1]
        evidence = f"each row has {width} numbers, the first {short(values[0])}"
        if width != classes:
            return ClassesRead(None, [("no class", evidence)])
        return ClassesRead(values.argmax(1), [("probabilities", evidence)])
    found = np.unique(values)
    if classes == 2 and np.isin(found, YES_NO).all():
        return ClassesRead((values == YES_NO[0]).astype(np.int64), [])
    span = f"values from {found[0]:g} to {found[-1]:g}"
    if np.all(found == np.round(found)):
        whole, evidence = values.astype(np.int64), f"{span}, expected 0 to {classes - 1}"
        if found[0] >= 0 and found[-1] < classes:
            return ClassesRead(whole, [])
        if found[0] >= 1 and found[-1] == classes:
            return ClassesRead(whole, [("one class off", evidence)], -1)
        if found[0] == -1 and found[-1] < classes - 1:
            return ClassesRead(whole, [("one class off", evidence)], 1)
        return ClassesRead(None, [("no class", evidence)])
    evidence = f"{span}, {len(found):,} different ones, such as {short(values)}"
    fault = [("probabilities", evidence)]
    if classes == 2:
        inside = found[0] >= 0 and found[-1] <= 1
        return ClassesRead((values > (0.5 if inside else 0.0)).astype(np.int64), fault)
    if found[0] < 0 or found[-1] <= 1 or found[-1] > classes - 1:
        return ClassesRead(None, fault)  # the class does not follow from these values
    return ClassesRead(np.round(values).astype(np.int64), fault)


def unknown_as_wrong(predicted: np.ndarray, targets: np.ndarray, classes: int) -> np.ndarray:
    """Return classes (n,) with a wrong class of the task in place of those that it has not."""
    known = (predicted >= 0) & (predicted < classes)
    return np.where(known, predicted, (targets + 1) % classes)


def shifted_scores(predicted: np.ndarray, targets: np.ndarray, step: int, classes: int) -> str:
    """Return the accuracy of classes (n,) before and after adding `step`, 1 or -1, to each."""
    moved = np.clip(predicted + step, 0, classes - 1)
    before, after = accuracy(predicted, targets), accuracy(moved, targets)
    word = "adding 1 to" if step == 1 else "taking 1 from"
    return f"accuracy {before:.3f} as the file stands, {after:.3f} after {word} each class"


def value_faults(task: Task, values: np.ndarray, targets: np.ndarray | None) -> Faults:
    """Yield the faults of values in the form of the task's metrics, (n,) or (n, C)."""
    if task.kind.labels is not None:
        yield from label_faults(values, targets)
    elif task.kind.classes is not None:
        yield from class_faults(values, targets, task.kind.classes)
    elif task.output is not None and task.output.scale is not None:
        yield from similarity_faults(values, targets, *task.output.scale)


def label_values(values: np.ndarray) -> tuple[np.ndarray | None, list[tuple[str, str]]]:
    """Convert values (n, C) of several labels to 0 and 1, or to None; also return the faults."""
    if np.isin(values, (0, 1)).all():
        return values.astype(np.int64), []
    evidence = f"values from {values.min():g} to {values.max():g}, such as {short(values[0])}"
    if np.all(values == np.round(values)):
        return None, [("no class", evidence)]
    inside = values.min() >= 0 and values.max() <= 1
    return (values > (0.5 if inside else 0.0)).astype(np.int64), [("probabilities", evidence)]


def class_faults(predicted: np.ndarray, targets: np.ndarray | None, classes: int) -> Faults:
    """Yield the faults of classes (n,), at most one of those that follow from each other."""
    counts = np.bincount(predicted, minlength=classes)
    if len(predicted) < LEAST:
        return
    if counts.max() >= ALMOST_ALL * len(predicted):
        known = None if targets is None else np.bincount(targets, minlength=classes)
        if known is None or known.max() < ALMOST_ALL * known.sum():
            yield "single class", f"{counts.max():,} of {len(predicted):,} are {counts.argmax()}"
        return
    if targets is None:
        return
    score = accuracy(predicted, targets)
    known = np.bincount(targets, minlength=classes)
    majority = known.max() / known.sum()
    for step in (1, -1) if classes > 2 else ():
        moved = np.clip(predicted + step, 0, classes - 1)
        gain = (moved == targets).astype(float) - (predicted == targets)
        if sure(gain) and gain.mean() > FAR and accuracy(moved, targets) > majority:
            yield "one class off", shifted_scores(predicted, targets, step, classes)
            return
    relation = matthews(predicted, targets)
    details = f"accuracy {score:.3f}, Matthews' correlation {relation:.3f}"
    if classes == 2 and relation < -FAR and relation * np.sqrt(len(targets)) < -SURE:
        yield "classes swapped", details
    elif score <= majority:
        yield "majority", f"{details}; class {known.argmax()} for all has accuracy {majority:.3f}"


def label_faults(predicted: np.ndarray, targets: np.ndarray | None) -> Faults:
    """Yield the faults of several labels per example, each 0 or 1 (n, C)."""
    if len(predicted) < LEAST:
        return
    rows, counts = np.unique(predicted, axis=0, return_counts=True)
    if counts.max() >= ALMOST_ALL * len(predicted):
        yield "single class", f"{counts.max():,} of {len(predicted):,} are {rows[counts.argmax()]}"
    elif targets is not None:
        usual = np.broadcast_to(targets.mean(0) > 0.5, targets.shape)
        score, plain = accuracy(predicted, targets), accuracy(usual, targets)
        if score <= plain:
            yield "majority", f"accuracy {score:.3f}; the usual value of each label: {plain:.3f}"


def similarity_faults(
    values: np.ndarray, targets: np.ndarray | None, low: float, high: float
) -> Faults:
    """Yield the faults of similarities (n,) on a scale from `low` to `high`."""
    if len(values) < LEAST:
        return
    _, counts = np.unique(values, return_counts=True)
    least, most, span = float(values.min()), float(values.max()), high - low
    if most - least < 1e-3 * span or counts.max() >= ALMOST_ALL * len(values):
        yield "constant", f"values from {least:g} to {most:g}"
        return
    slack = MARGIN * span
    outside = float(np.mean((values < low - slack) | (values > high + slack)))
    all_small = targets is not None and targets.max() <= 1
    described = f"values from {least:.3g} to {most:.3g}, labels from {low:g} to {high:g}"
    if (most <= 1.05 and least >= -1.05 and not all_small) or outside > OUTSIDE:
        kind = "0 to 1" if least >= -0.05 else "-1 to 1"
        share = f"{outside:.0%} lie outside" if outside > OUTSIDE else f"the scale is {kind}"
        yield "scale", f"{described}: {share}"
    halves = np.all(2 * values == np.round(2 * values))
    if halves and (targets is None or not np.all(2 * targets == np.round(2 * targets))):
        yield "rounded", f"{len(counts)} different values: {short(np.unique(values))}"
    if targets is None:
        return
    relation, errors = pearson(values, targets), np.sqrt(len(values))
    details = f"Pearson's correlation {relation:.3f} of {len(values):,} pairs"
    if relation < -FAR and relation * errors < -SURE:
        yield "anti-correlated", details
    elif relation * errors < NO_RELATION:
        yield "uncorrelated", details


def too_good(task: str, score: float, published: bool) -> Faults:
    """Yield a fault for an implausible score, of published data, or a perfect one, of any data."""
    limit = IMPLAUSIBLE.get(task, 1.0) if published else 1.0
    if score >= limit - 1e-9:
        best = f"; published systems stay clearly below {limit:g}" if published else ""
        yield "trained on dev", f"score {score:.4f}{best}"


def better_than_test(dev: float, test: float, counts: tuple[int, int]) -> Faults:
    """Yield a fault for a dev score far above the test score, of `counts` examples each."""
    error = np.sqrt(
        sum(
            max(score * (1 - score), 0.01) / n for score, n in zip((dev, test), counts, strict=True)
        )
    )
    if dev - test > max(FAR, SURE * error):
        yield "trained on dev", f"dev {dev:.3f}, test {test:.3f}"


def sure(gains: np.ndarray) -> bool:
    """Return whether a mean of paired differences (n,) is far enough above its standard error."""
    return bool(gains.mean() * np.sqrt(len(gains)) > SURE * gains.std())


def short(values: np.ndarray) -> str:
    more = ", …" if len(values) > MOST_SHOWN else ""
    return ", ".join(f"{value:.4g}" for value in values[:MOST_SHOWN]) + more
