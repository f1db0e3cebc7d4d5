"""Evaluation of a split: probabilities, metrics, losses, and the score that selects an epoch."""

from collections.abc import Mapping

import numpy as np
import torch

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
    own = []
    with bar(f"score {task.name}", "ex", len(split.examples), passing=True) as progress:
        for number, rows in enumerate(batches):
            if number % processes.count == processes.rank:
                embeddings = model.embed(split.batch(rows), task.name)
                own.append(task.scores(model.heads[task.name], embeddings).float().cpu().numpy())
            progress.update(len(rows))
    several = processes.gather(own)
    parts = [several[i % processes.count][i // processes.count] for i in range(len(batches))]
    found = np.concatenate(parts)[np.argsort(np.concatenate(batches))]
    check_scores(task, found)
    return found


def check_scores(task: Task, found: np.ndarray) -> None:
    """Raise RunError for scores that are not finite."""
    if len(invalid := found[~np.isfinite(found)]):
        line = "weights of the encoder or of the head are too large"
        raise RunError(f"{task.name}: the scores are not finite ({invalid[0]}): {line}")


def selection_score(metrics: Metrics, tasks: Mapping[str, Task]) -> float:
    """Return the `mean_score` of the main metrics, which selects the best epoch."""
    names = {name: task.kind.main_metric for name, task in tasks.items()}
    return mean_score({name: metrics[name][metric] for name, metric in names.items()}, names)
