"""What is written of predictions: a table, a file for GLUE's leaderboard, metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

# Tasks of GLUE's leaderboard; WNLI is none of ours, and AX is told by one of MNLI.
SUBMITTED = ("cola", "sst2", "mrpc", "sts", "qqp", "mnli", "qnli", "rte")

if TYPE_CHECKING:
    import numpy as np

    from serving.model import Prediction
    from tasks.base import Task


def submitted(task: Task, found: Prediction, indices: Iterator[str]) -> list[list[Any]]:
    """The next indices and what is predicted, a class as GLUE's files write it."""
    from tasks import DECLARED

    if task.kind.classes is None:
        return [[next(indices), label] for label in found.labels]
    labels = DECLARED[task.name].labels if task.name in DECLARED else ("0", "1")
    return [[next(indices), labels[int(value)]] for value in found.values]


def columns(found: dict[str, Prediction], probabilities: bool) -> list[str]:
    """Names of what is answered: `sst`, and `sst: positive` for a probability."""
    names = []
    for task, one in found.items():
        names.append(task)
        if probabilities:
            names += [f"{task}: {name}" for name in one.class_names]
    return names


def answers(found: dict[str, Prediction], place: int, probabilities: bool) -> list[Any]:
    """Of one row."""
    values: list[Any] = []
    for one in found.values():
        values.append(one.labels[place])
        if probabilities and one.probabilities is not None:
            values += [f"{value:.6f}" for value in one.probabilities[place]]
    return values


def shown(task: Task, values: list[np.ndarray], targets: np.ndarray) -> str:
    """The metrics as a table."""
    import numpy as np

    from reports.tables import text_table
    from serving.scoring import metrics_of

    metrics = metrics_of(task, np.concatenate(values), targets)
    rows = [[task.name, name, f"{value:.4f}"] for name, value in metrics.items()]
    known = int(np.sum(~np.isnan(targets)))
    return f"{text_table(['task', 'metric', f'{known:,} rows'], rows)}\n\n"
