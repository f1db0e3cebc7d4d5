"""A run whose cell also keeps F1 of each class on test, and how many there are of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from multitask.assembly import plain_tasks
from multitask.config import RunConfig
from studies.seeds import training
from tasks import data_folder
from tasks.predictions import read_scores, scores_name
from tasks.readers import limit_of


def training_with_f1(config: RunConfig, folder: Path) -> dict[str, Any]:
    """One run; `f1_by_class`, `training_counts` and `test_counts` have a figure a class."""
    from sklearn.metrics import f1_score

    found = training(config, folder)
    (task,) = config.tasks
    limit = limit_of(config.limit, task)
    train = plain_tasks(config)[task].read(data_folder(config.data), "train", limit)
    assert train.targets is not None
    scores = read_scores(folder / "predictions" / scores_name(task, "test"))
    classes = scores.values.shape[1]
    found["training_counts"] = np.bincount(train.targets, minlength=classes).tolist()
    if scores.targets is not None:
        found["test_counts"] = np.bincount(scores.targets, minlength=classes).tolist()
        predicted, every = scores.values.argmax(1), range(classes)
        figures = f1_score(scores.targets, predicted, labels=every, average=None, zero_division=0)
        found["f1_by_class"] = [round(float(figure), 6) for figure in figures]
    return found
