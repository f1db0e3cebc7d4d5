"""Error analysis of BEES, section 6: negations in sentiment, and the mean similarity."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multitask.config_tasks import plain_tasks
from multitask.runs import Run
from multitask.settings.config import RunConfig
from studies.runner import long_training
from tasks import data_folder

# Words of negation in SST, which separates "n't" from its verb.
NEGATIONS = {
    *("not", "n't", "no", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor"),
    *("cannot", "without", "hardly", "barely"),
}


def analysed_training(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a run whose folder is kept; return its metrics and the analysis of its errors."""
    return long_training(config, folder) | {"analysis": analysis_of(config, folder)}


def analysis_of(config: RunConfig, folder: Path) -> dict[str, dict[str, float]]:
    """Return the analysis of a finished run's dev predictions of SST and STS, by task."""
    found = {}
    for name, task in plain_tasks(config).items():
        if name not in ("sst", "sts"):
            continue
        scores = Run(folder).scores(name, "dev")
        assert scores.targets is not None
        predicted = scores.predicted(task.kind.predictions)
        if name == "sts":
            means = {"mean_label": scores.targets, "mean_prediction": predicted}
            found[name] = {key: float(np.mean(values)) for key, values in means.items()}
            continue
        examples = task.read(data_folder(config.data), "dev")
        texts = dict(zip(examples.ids, examples.texts[0], strict=True))
        negated = has_negation([texts[one] for one in scores.ids])
        found[name] = negation_errors(scores.targets, predicted, negated)
    return found


def has_negation(texts: Sequence[str]) -> np.ndarray:
    """Return for each text whether it has a word of negation, bool (n,)."""
    return np.array([not NEGATIONS.isdisjoint(text.lower().split()) for text in texts], bool)


def negation_errors(
    targets: np.ndarray, predicted: np.ndarray, negated: np.ndarray
) -> dict[str, float]:
    """Return number and accuracy of texts with a negation and of others, and the negation's shift.

    `targets` and `predicted` are classes (n,), `negated` is bool (n,). The shift is the mean
    prediction of texts with a negation minus that of others of the same class, averaged over the
    texts with a negation: classes differ in how often they have one. It is left out if no class
    has both.
    """
    found: dict[str, float] = {}
    for name, rows in (("negated", negated), ("other", ~negated)):
        found[f"{name}_count"] = int(rows.sum())
        if rows.any():
            found[f"{name}_accuracy"] = float(np.mean(predicted[rows] == targets[rows]))
    shifts, weights = [], []
    for label in np.unique(targets):
        mine, others = (targets == label) & negated, (targets == label) & ~negated
        if mine.any() and others.any():
            shifts.append(float(predicted[mine].mean() - predicted[others].mean()))
            weights.append(int(mine.sum()))
    if shifts:
        found["negation_shift"] = float(np.average(shifts, weights=weights))
    return found
