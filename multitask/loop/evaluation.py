"""Evaluation of a split: probabilities, metrics, losses, and the score that selects an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from common.errors import RunError
from common.progress import bar
from minbert.batching import sorted_batches
from minbert.bi_encoder import batch_tokens
from multitask.distributed import Processes
from multitask.model import EncoderWithHeads
from tasks.base import Embeddings, Task
from tasks.data import Split, Splits
from tasks.metrics import mean_score

Metrics = dict[str, dict[str, float]]


def score_split(model: EncoderWithHeads, task: Task, split: Split) -> np.ndarray:
    """Return (n, C) probabilities or (n,) similarities, float32, in the order of the file."""
    return score_splits(model, {task.name: task}, {task.name: split.separate})[task.name]


def score_splits(
    model: EncoderWithHeads,
    tasks: Mapping[str, Task],
    splits: Mapping[str, Split],
    processes: Processes = Processes(),
) -> dict[str, np.ndarray]:
    """Return the scores of each task, as `score_split` does; shared rows are encoded once."""
    groups: dict[tuple[str, ...], dict[str, Split]] = {}
    for name in tasks:
        split = splits[name] if model.embeds_alike(name) else splits[name].separate
        key = (name,) if split.shared is None else split.shared.tasks
        groups.setdefault(key, {})[name] = split
    found: dict[str, np.ndarray] = {}
    for group in groups.values():
        members = [tasks[name] for name in group]
        found |= score_together(model, members, list(group.values()), processes)
    return {name: found[name] for name in tasks}


@torch.inference_mode()
def score_together(
    model: EncoderWithHeads,
    tasks: Sequence[Task],
    splits: Sequence[Split],
    processes: Processes,
) -> dict[str, np.ndarray]:
    """Return the scores of tasks whose splits have the same rows, from one pass over the rows."""
    model.eval()
    first, names = splits[0], ", ".join(task.name for task in tasks)
    batches = sorted_batches(first.lengths, batch_tokens(model.bi_encoder.device))
    scores: dict[str, Tensor] = {}
    with bar(f"score {names}", "ex", first.row_count, passing=True) as progress:
        for number, rows in enumerate(batches):
            own = number % processes.count == processes.rank
            if own or not scores:  # all processes need the shapes, from the first batch
                texts = model.embed(first.batch(rows), tasks[0].name)
                for task, split in zip(tasks, splits, strict=True):
                    examples, embeddings = labelled_rows(split, rows, texts)
                    part = task.scores(model.heads[task.name], embeddings).float()
                    if task.name not in scores:
                        shape = (len(split.examples), *part.shape[1:])
                        scores[task.name] = part.new_zeros(shape)
                    if own:
                        scores[task.name][torch.from_numpy(examples).to(part.device)] = part
            progress.update(len(rows))
    return {name: checked(name, processes.all_reduce_sum(one)) for name, one in scores.items()}


def labelled_rows(
    split: Split, rows: np.ndarray, texts: Embeddings
) -> tuple[np.ndarray, Embeddings]:
    """Return the examples in rows of a split, and their embeddings among those of all rows."""
    examples = split.examples_in(rows)
    chosen = examples >= 0
    if chosen.all():
        return examples, texts
    kept = torch.from_numpy(np.flatnonzero(chosen)).to(texts[0].device)
    return examples[chosen], tuple(text[kept] for text in texts)


def checked(name: str, scores: Tensor) -> np.ndarray:
    """Return a task's scores on the CPU; raise RunError if some are not finite."""
    found = scores.cpu().numpy()
    if len(invalid := found[~np.isfinite(found)]):
        raise RunError(f"{name}: expected finite scores, found {invalid[0]}")
    return found


def evaluate(
    model: EncoderWithHeads,
    tasks: Mapping[str, Task],
    splits: Mapping[str, Split],
    processes: Processes = Processes(),
) -> tuple[Metrics, dict[str, np.ndarray]]:
    """Return metrics and scores of each task on a labelled split."""
    scores = score_splits(model, tasks, splits, processes)
    return measured(tasks, splits, scores), scores


def measured(
    tasks: Mapping[str, Task], splits: Mapping[str, Split], scores: Mapping[str, np.ndarray]
) -> Metrics:
    """Return the metrics of each task's scores."""
    metrics = {}
    for name, task in tasks.items():
        targets = splits[name].examples.targets
        assert targets is not None
        metrics[name] = task.kind.measure(scores[name], targets)
    return metrics


def figures_by_class(
    tasks: Mapping[str, Task],
    splits: Splits,
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


def counted(metrics: Metrics, tasks: Mapping[str, Task]) -> Metrics:
    """Return the metrics of the tasks that are not auxiliary."""
    return {name: metrics[name] for name, task in tasks.items() if not task.auxiliary}


def selection_score(metrics: Metrics, tasks: Mapping[str, Task]) -> float:
    """Return the `mean_score` of the main metrics, without auxiliary tasks.

    It selects the best epoch.
    """
    names = {name: tasks[name].kind.main_metric for name in counted(metrics, tasks)}
    return mean_score({name: metrics[name][metric] for name, metric in names.items()}, names)
