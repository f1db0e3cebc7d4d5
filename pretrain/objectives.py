"""The objectives of pre-training as tasks of the one loop: what is read, the loss, dev on STS."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from losses import simcse_loss, triplet_margin_loss
from multitask.config import RunConfig
from pretrain.nli import entailments
from pretrain.own_text import own_pairs, unlabelled
from pretrain.texts import (
    SIMILAR,
    Make,
    Texts,
    pairs_and_strangers,
    positive_pairs,
    sentences,
    training_sentences,
)
from tasks.base import Embeddings, Task
from tasks.kinds import Kind
from tasks.metrics import pearson, spearman

OBJECTIVES = ("simcse", "nli", "pairs", "ranking", "triplet")


class Projection(nn.Module):
    """The texts' embeddings; in training with `mlp`, through a layer that is not kept for use.

    A linear layer and tanh, for all texts alike (Gao et al., 2021, section 6.3).
    """

    def __init__(self, width: int, mlp: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width) if mlp else None

    def forward(self, *texts: Tensor) -> Embeddings:
        if self.layer is None or not self.training:
            return texts
        return tuple(torch.tanh(self.layer(text)) for text in texts)


def build_objective(config: RunConfig) -> dict[str, Task]:
    """The one task of a pre-training run, under its objective's name."""
    name = config.objective
    assert name is not None
    temperature, margin = config.contrast_temperature, config.margin

    def two(texts: Embeddings, groups: Tensor) -> Tensor:
        return simcse_loss(texts[0], texts[1], temperature, groups=groups)

    def three(texts: Embeddings, groups: Tensor) -> Tensor:
        own, other = groups.unbind(1) if groups.ndim == 2 else (groups, None)
        return simcse_loss(texts[0], texts[1], temperature, texts[2], own, other)

    def triplet(texts: Embeddings, groups: Tensor) -> Tensor:
        return triplet_margin_loss(texts[0], texts[1], texts[2], margin)

    losses = {"simcse": two, "nli": three, "pairs": two, "ranking": three, "triplet": triplet}
    task = Task(
        name=name,
        kind=similarity_of_embeddings(losses[name]),
        source=source_of(config),
        build_head=partial(Projection, mlp=config.projection),
        in_batch=name != "triplet",
    )
    return {name: task}


def source_of(config: RunConfig) -> Texts:
    """Where the texts of an objective come from."""
    if config.objective == "nli":
        return Texts(lambda _, limit: entailments(Path(config.nli or ""), limit), str(config.nli))
    origin = config.text or f"the training files of {', '.join(config.tasks)}"
    if config.objective == "simcse":
        own = partial(unlabelled, config.text or "", config.text_column)
        labelled = partial(sentences, config.tasks, config.own_tasks)
        return Texts(own if config.text else labelled, origin)
    pairs: Make = partial(positive_pairs, config.tasks)
    if config.text:
        columns = (config.text_column or "", config.other_column or "")
        pairs = partial(own_pairs, config.text, columns)
    if config.objective != "pairs":
        strangers = None if config.text else partial(training_sentences, config.tasks)
        pairs = partial(pairs_and_strangers, pairs, strangers, origin, config.seed)
    return Texts(pairs, origin)


def similarity_of_embeddings(loss: Callable[[Embeddings, Tensor], Tensor]) -> Kind:
    """Scores (B, 2 H) are both embeddings at unit length; STS dev Spearman selects the epoch."""
    return Kind(
        loss=loss,
        scores=lambda texts: torch.cat([F.normalize(text) for text in texts], dim=1),
        predictions=lambda scores: scores,
        metrics=embedding_metrics,
        main_metric="spearman",
        worst=-1.0,
    )


def embedding_metrics(scores: np.ndarray, similarities: np.ndarray) -> dict[str, float]:
    """Correlations of the cosines, and alignment and uniformity (Wang and Isola, 2020).

    Alignment is the mean squared distance of pairs that mean the same, uniformity the logarithm of
    the mean of exp(-2 d^2) over all pairs of sentences; the lower, the better, both.
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
