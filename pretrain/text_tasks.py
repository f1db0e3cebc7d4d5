"""Pre-training on texts as a task of the training loop: source, loss, evaluation on STS dev."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from multitask.config import RunConfig
from pretrain.texts import (
    SIMILAR,
    Make,
    Texts,
    own_pairs,
    pairs_with_negatives,
    positive_pairs,
    training_sentences,
)
from tasks.base import Embeddings, Kind, Task
from tasks.metrics import pearson, spearman

if TYPE_CHECKING:
    from pretrain.objectives import PairObjective, PretrainObjective


class Projection(nn.Module):
    """The texts' embeddings; with `mlp`, only in training, through a linear layer and tanh.

    The layer is shared by all texts (Gao et al., 2021, section 6.3).
    """

    def __init__(self, width: int, mlp: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width) if mlp else None

    def forward(self, *texts: Tensor) -> Embeddings:
        if self.layer is None or not self.training:
            return texts
        return tuple(torch.tanh(self.layer(text)) for text in texts)


def text_task(objective: PretrainObjective, config: RunConfig) -> Task:
    """Return the only task of a pre-training run on texts, named after its objective."""
    return Task(
        name=objective.name,
        kind=similarity_of_embeddings(objective.loss),
        source=objective.source(config),
        build_head=partial(Projection, mlp=getattr(objective, "projection", False)),
        in_batch=objective.compares,
    )


def origin_of(config: RunConfig) -> str:
    """Return a phrase for messages that names the source of the tasks' texts."""
    return f"the training files of {', '.join(config.tasks)}"


def pair_source(objective: PairObjective, config: RunConfig) -> Texts:
    """Return pairs of tasks or of the objective's file, optionally with an unrelated sentence."""
    origin = objective.text or origin_of(config)
    pairs: Make = partial(positive_pairs, config.tasks)
    if objective.text:
        columns = (objective.text_column or "", objective.other_column or "")
        pairs = partial(own_pairs, objective.text, columns)
    if objective.unrelated:
        others = None if objective.text else partial(training_sentences, config.tasks)
        pairs = partial(pairs_with_negatives, pairs, others, origin, config.seed)
    return Texts(pairs, origin)


def similarity_of_embeddings(loss: Callable[[Embeddings, Tensor], Tensor]) -> Kind:
    """Return a kind whose scores (B, 2H) are two unit embeddings; Spearman selects the epoch."""
    return Kind(
        loss=loss,
        scores=lambda texts: torch.cat([F.normalize(text) for text in texts], dim=1),
        predictions=lambda scores: scores,
        metrics=embedding_metrics,
        main_metric="spearman",
        worst=-1.0,
    )


def embedding_metrics(scores: np.ndarray, similarities: np.ndarray) -> dict[str, float]:
    """Return correlations of the cosines, alignment and uniformity (Wang and Isola, 2020).

    Alignment is the mean squared distance of pairs with the same meaning. Uniformity is the
    logarithm of the mean of exp(-2 d^2) over all pairs of sentences. Lower is better for both.
    """
    u, v = np.split(scores.astype(np.float64), 2, axis=1)
    cosines = (u * v).sum(1)
    found = {
        "spearman": spearman(cosines, similarities),
        "pearson": pearson(cosines, similarities),
    }
    if (similar := similarities >= SIMILAR).any():
        found["alignment"] = float(2 - 2 * cosines[similar].mean())
    every = np.concatenate([u, v])
    distances = (2 - 2 * every @ every.T)[np.triu_indices(len(every), 1)]
    found["uniformity"] = float(np.log(np.exp(-2 * distances).mean()))
    return found
