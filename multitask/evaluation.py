"""Evaluation of a split: probabilities, metrics, losses, and the score that selects an epoch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from common.errors import RunError
from common.progress import bar
from minbert.batching import sorted_batches
from minbert.bi_encoder import batch_tokens
from multitask.distributed import Processes
from multitask.model import EncoderWithHeads
from tasks.base import Task
from tasks.data import Split

Metrics = dict[str, dict[str, float]]


@torch.inference_mode()
def score_split(
    model: EncoderWithHeads, task: Task, split: Split, processes: Processes = Processes()
) -> np.ndarray:
    """Return (n, C) probabilities or (n,) similarities, float32, in the order of the file."""
    model.eval()
    head = model.heads[task.name]
    batches = sorted_batches(split.lengths, batch_tokens(model.bi_encoder.device))
    scores: Tensor | None = None
    with bar(f"score {task.name}", "ex", len(split.examples), passing=True) as progress:
        for number, rows in enumerate(batches):
            if number % processes.count == processes.rank or scores is None:
                batch = split.batch(rows)
                texts = model.embed(batch, task.name)
                part = task.scores(head, texts).float()
                if scores is None:  # every process needs the shape, from the first batch
                    scores = part.new_zeros((len(split.examples), *part.shape[1:]))
                if number % processes.count == processes.rank:
                    scores[torch.from_numpy(rows).to(scores.device)] = part
            progress.update(len(rows))
    assert scores is not None, "a split has examples"
    found = processes.all_reduce_sum(scores).cpu().numpy()
    if len(invalid := found[~np.isfinite(found)]):
        raise RunError(f"{task.name}: expected finite scores, found {invalid[0]}")
    return found


def evaluate(
    model: EncoderWithHeads,
    tasks: Mapping[str, Task],
    splits: Mapping[str, Split],
    processes: Processes = Processes(),
) -> tuple[Metrics, dict[str, np.ndarray]]:
    """Return metrics and scores of each task on a labelled split."""
    scores = {name: score_split(model, tasks[name], splits[name], processes) for name in tasks}
    metrics = {}
    for name, task in tasks.items():
        targets = splits[name].examples.targets
        assert targets is not None
        metrics[name] = task.kind.measure(scores[name], targets)
    return metrics, scores


def figures_by_class(
    tasks: Mapping[str, Task],
    splits: Mapping[str, Mapping[str, Split]],
    split: str,
    scores: Mapping[str, np.ndarray],
) -> dict[str, dict[str, dict[str, float]]]:
    """Return precision, recall, F1 and support by task and class, of tasks with known labels."""
    found = {}
    for name, values in scores.items():
        kind, targets = tasks[name].kind, splits[name][split].examples.targets
        if kind.columns is not None and targets is not None:
            found[name] = kind.by_class(kind.predictions(values), targets)
    return found


@torch.inference_mode()
def mean_losses(
    model: EncoderWithHeads, tasks: Mapping[str, Task], splits: Mapping[str, Split], count: int
) -> dict[str, float]:
    """Return the mean loss of each objective, without dropout, on `count` examples of its split.

    The examples are drawn with a fixed random seed. A split with fewer examples is used as a whole.
    """
    model.eval()
    found: dict[str, float] = {}
    for name, task in tasks.items():
        split = splits[name]
        chosen = np.random.default_rng(0).permutation(len(split.examples))[:count]
        totals: dict[str, float] = dict.fromkeys(task.objectives, 0.0)
        for part in sorted_batches(split.lengths[chosen], batch_tokens(model.bi_encoder.device)):
            rows = chosen[part]
            batch = split.batch(rows)
            texts = model.embed(batch, name)
            targets = split.targets(rows, texts[0].device)
            for objective, loss in task.compute_losses(
                model.heads[name](*texts), texts, targets
            ).items():
                totals[objective] += float(loss) * len(rows)
        found |= {objective: total / len(chosen) for objective, total in totals.items()}
    return found


def counted(metrics: Metrics, tasks: Mapping[str, Task]) -> Metrics:
    """Return the metrics of the tasks that are not auxiliary."""
    return {name: metrics[name] for name, task in tasks.items() if not task.auxiliary}


def selection_score(metrics: Metrics, tasks: Mapping[str, Task]) -> float:
    """Return the mean of the main metrics, each scaled to [0, 1], which selects the best epoch.

    Auxiliary tasks do not count. With the three CS224N tasks this is the overall score (BEES,
    Eq. 6).
    """
    kinds = {name: tasks[name].kind for name in counted(metrics, tasks)}
    scaled = [(metrics[n][k.main_metric] - k.worst) / (1 - k.worst) for n, k in kinds.items()]
    return float(np.mean(scaled))
