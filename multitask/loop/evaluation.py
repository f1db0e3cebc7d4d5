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
from tasks.metrics import mean_score

Metrics = dict[str, dict[str, float]]


@torch.inference_mode()
def score_split(
    model: EncoderWithHeads, task: Task, split: Split, processes: Processes = Processes()
) -> np.ndarray:
    """Return (n, C) probabilities or (n,) similarities, float32, in the order of the file."""
    model.eval()
    batches = sorted_batches(split.lengths, batch_tokens(model.bi_encoder.device))
    scores: Tensor | None = None
    with bar(f"score {task.name}", "ex", len(split.examples), passing=True) as progress:
        for number, rows in enumerate(batches):
            own = number % processes.count == processes.rank
            if own or scores is None:  # all processes need the shape, from the first batch
                part = task.scores(
                    model.heads[task.name], model.embed(split.batch(rows), task.name)
                ).float()
                if scores is None:
                    scores = part.new_zeros((len(split.examples), *part.shape[1:]))
                if own:
                    scores[torch.from_numpy(rows).to(part.device)] = part
            progress.update(len(rows))
    assert scores is not None, "a split has an example"
    found = processes.all_reduce_sum(scores).cpu().numpy()
    check_scores(task, found)
    return found


def check_scores(task: Task, found: np.ndarray) -> None:
    """Raise RunError for scores that are not finite."""
    if len(invalid := found[~np.isfinite(found)]):
        line = "weights of the encoder or of the head are too large"
        raise RunError(f"{task.name}: expected finite scores, found {invalid[0]}: {line}")


def evaluate(
    model: EncoderWithHeads,
    tasks: Mapping[str, Task],
    splits: Mapping[str, Split],
    processes: Processes = Processes(),
) -> tuple[Metrics, dict[str, np.ndarray]]:
    """Return metrics and scores of each task on a labelled split."""
    scores, metrics = {}, {}
    for name, task in tasks.items():
        targets = splits[name].examples.targets
        assert targets is not None
        scores[name] = score_split(model, task, splits[name], processes)
        metrics[name] = task.kind.measure(scores[name], targets)
    return metrics, scores


def selection_score(metrics: Metrics, tasks: Mapping[str, Task]) -> float:
    """Return the `mean_score` of the main metrics, which selects the best epoch."""
    names = {name: task.kind.main_metric for name, task in tasks.items()}
    return mean_score({name: metrics[name][metric] for name, metric in names.items()}, names)
