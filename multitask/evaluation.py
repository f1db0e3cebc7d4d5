"""Scores of a split: probabilities, predictions, metrics, and the figure that selects an epoch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from minbert.batching import sorted_batches
from minbert.encoding import batch_tokens
from multitask.model import MultiTaskModel
from multitask.run_folder import RunError
from multitask.telemetry import scoring_bar
from tasks.base import Task
from tasks.data import Split
from tasks.metrics import overall_plain_mean, overall_score

Metrics = dict[str, dict[str, float]]


@torch.inference_mode()
def score_split(model: MultiTaskModel, task: Task, split: Split, precision: str) -> np.ndarray:
    """(n, C) probabilities or (n,) similarities, float32, in the file's order."""
    model.eval()
    head = model.heads[task.name]
    batches = sorted_batches(split.lengths, batch_tokens(model.bi_encoder.device))
    parts = []
    with scoring_bar(task.name, len(split.examples)) as bar:
        for rows in batches:
            embeddings = model.embed(split.batch(rows), precision)
            parts.append(task.scores(head, embeddings).float().cpu().numpy())
            bar.update(len(rows))
    scores = np.empty((len(split.examples), *parts[0].shape[1:]), np.float32)
    scores[np.concatenate(batches)] = np.concatenate(parts)
    strange = scores[~np.isfinite(scores)]
    if len(strange):
        raise RunError(f"{task.name}: expected finite scores, found {strange[0]}")
    return scores


def evaluate(
    model: MultiTaskModel, tasks: Mapping[str, Task], splits: Mapping[str, Split], precision: str
) -> tuple[Metrics, dict[str, np.ndarray]]:
    """Metrics and scores of each task on a labelled split."""
    scores = {name: score_split(model, tasks[name], splits[name], precision) for name in tasks}
    metrics = {}
    for name, task in tasks.items():
        targets = splits[name].examples.targets
        assert targets is not None
        metrics[name] = task.kind.metrics(task.kind.predictions(scores[name]), targets)
    return metrics, scores


def overall(metrics: Metrics) -> dict[str, float]:
    """Both overall scores where all three CS224N tasks are there, else nothing."""
    if not {"sst", "qqp", "sts"} <= metrics.keys():
        return {}
    figures = (
        metrics["sst"]["accuracy"],
        metrics["qqp"]["accuracy"],
        metrics["sts"]["pearson"],
    )
    return {
        "overall": overall_score(*figures),
        "overall_plain_mean": overall_plain_mean(*figures),
    }


def selection_score(metrics: Metrics, tasks: Mapping[str, Task]) -> float:
    """What chooses the best epoch: the mean of the main metrics, each moved to [0, 1].

    With the three CS224N tasks this is the overall score (BEES, Eq. 6).
    """
    figures = []
    for name, task in tasks.items():
        worst = task.kind.worst
        figures.append((metrics[name][task.kind.main_metric] - worst) / (1 - worst))
    return float(np.mean(figures))
