"""Pre-training objectives as tasks of the training loop: source, head, loss and evaluation.

Objectives about texts form one task, evaluated on STS dev. Objectives about classes (SuperConText;
Moukafih, Sbihi, Ghogho and Smaili, 2023) replace the losses of a configuration's tasks; their
encoder is evaluated by logistic regression on frozen embeddings (`probe.py`) or by fine-tuning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from losses.objectives import ClassLoss, ClassObjective
from multitask.config_tasks import plain_tasks
from multitask.settings.config import RunConfig
from pretrain.objectives import PairObjective, TextObjective
from pretrain.projection_heads import projection_head
from pretrain.texts import (
    Make,
    Texts,
    distinct_texts,
    overlap,
    pairs_with_negatives,
    positive_pairs,
    read_pairs,
    read_texts,
    sentences,
    training_sentences,
)
from tasks import CS224N, SAMPLE, data_folder
from tasks.base import Embeddings, Task, output_loss
from tasks.kinds import Kind
from tasks.metrics import pearson, spearman
from tasks.readers import limit_of, sample_rows
from tasks.registry import SAME_MEANING
from tasks.text_files import DataError

NEIGHBOURS, MAX_EXAMPLES = 10, 5000


class TextProjection(nn.Module):
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


class ClassProjection(nn.Module):
    """Embeddings (B, H); only in training, their projection, (B, 512) unless it has no layer."""

    def __init__(self, width: int, projection: str) -> None:
        super().__init__()
        self.projection = projection_head(projection, width)

    def forward(self, embedding: Tensor) -> Tensor:
        return self.projection(embedding) if self.training else embedding


def pretraining_tasks(config: RunConfig) -> dict[str, Task]:
    """Return the tasks of a pre-training run by name."""
    objective = config.pretraining_objective
    if objective.of_classes:
        return contrastive_tasks(objective, config)
    return {objective.name: text_task(objective, config)}


def text_task(objective: TextObjective, config: RunConfig) -> Task:
    """Return the only task of a pre-training run on texts, named after its objective."""
    return Task(
        name=objective.name,
        kind=embedding_kind(
            objective.loss,
            # Two unit embeddings: (B, 2H).
            scores=lambda texts: torch.cat([F.normalize(text) for text in texts], dim=1),
            metrics=similarity_metrics,
            main_metric="spearman",
        ),
        source=objective.source(config),
        build_head=partial(TextProjection, mlp=objective.adds_layer),
        compares_examples=objective.compares_examples,
    )


def contrastive_tasks(objective: ClassObjective, config: RunConfig) -> dict[str, Task]:
    """Return the single-text classification tasks of a configuration, trained by the objective.

    The new names contain the objective's, because the dev metrics differ from the tasks' own.
    """
    first, later = objective.losses()
    found = {}
    for task in plain_tasks(config).values():
        name = f"{task.name}-{objective.name}"
        found[name] = replace(
            task,
            name=name,
            kind=embedding_kind(
                first,
                scores=partial(F.normalize, dim=-1),
                metrics=neighbour_metrics,
                main_metric="knn_accuracy",
                classes=task.kind.classes,
            ),
            build_head=partial(ClassProjection, projection=objective.projection_head),
            output=None,
            losses={},
            compares_examples=True,
            loss_switch=None if later is None else (later[0], output_loss(later[1])),
        )
    return found


def embedding_kind(loss: Callable[[Any, Tensor], Tensor] | ClassLoss, **functions: Any) -> Kind:
    """Return a kind whose scores are embeddings, which are also its predictions."""
    return Kind(loss=loss, predictions=lambda scores: scores, **functions)


def origin_of(config: RunConfig) -> str:
    """Return a phrase for messages that names the source of the tasks' texts."""
    return f"the training files of {', '.join(config.tasks)}"


def tasks_of(config: RunConfig) -> list[Task]:
    """Return the tasks whose training texts are read."""
    return [config.options_of(name).build() for name in config.tasks]


def sentence_source(objective: Any, config: RunConfig) -> Texts:
    """Return the sentences of tasks or of the objective's file, each paired with itself."""
    if objective.text:
        column = objective.text_column[0] if objective.text_column else None
        return Texts(partial(read_texts, objective.text, column), objective.text)
    return Texts(partial(sentences, tasks_of(config)), origin_of(config))


def pair_source(objective: PairObjective, config: RunConfig) -> Texts:
    """Return pairs of tasks or of the objective's file, optionally with a random negative."""
    origin = objective.text or origin_of(config)
    pairs: Make = partial(positive_pairs, config.tasks)
    if objective.text:
        first, second = objective.text_column
        pairs = partial(read_pairs, objective.text, (first, second))
    if objective.random_negatives:
        pool = None if objective.text else partial(training_sentences, tasks_of(config))
        pairs = partial(pairs_with_negatives, pairs, pool, origin, config.seed)
    return Texts(pairs, origin)


def overlap_lines(config: RunConfig, tasks: Mapping[str, Task]) -> Iterator[str]:
    """Yield one line per task: how many of its dev and test sentences are in the training text."""
    folder, objective = data_folder(config.data), config.pretraining_objective
    if objective.file is not None and config.data == SAMPLE:
        yield "dev is STS of the bundled sample, made from templates: its metrics mean little"
    examples = [
        task.read(folder, "train", limit_of(config.limit, task.name)) for task in tasks.values()
    ]
    known = distinct_texts(column for some in examples for column in some.texts)
    # For pre-training on classes also the dev and test files of its own tasks.
    own = config.tasks if objective.of_classes else ()
    for name in dict.fromkeys((*CS224N, *own)):
        try:
            shared = overlap(known, folder, config.options_of(name).build())
        except DataError as error:
            yield f"overlap with {name}: unknown ({error})"
            continue
        found = ", ".join(f"{count:,} of {split}" for split, count in shared.items())
        yield f"sentences of {name} that the training text contains: {found}"


def similarity_metrics(scores: np.ndarray, similarities: np.ndarray) -> dict[str, float]:
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
    if (similar := similarities >= SAME_MEANING["sts"]).any():
        found["alignment"] = float(2 - 2 * cosines[similar].mean())
    every = np.concatenate([u, v])
    distances = (2 - 2 * every @ every.T)[np.triu_indices(len(every), 1)]
    found["uniformity"] = float(np.log(np.exp(-2 * distances).mean()))
    return found


def neighbour_metrics(embeddings: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """Return the accuracy of a vote of the nearest neighbours, ten at most, on examples (n, H).

    An example is not its own neighbour. On a tie the lowest class wins. Of more than 5,000
    examples, 5,000 are drawn, always the same.
    """
    from sklearn.neighbors import NearestNeighbors

    if len(embeddings) > MAX_EXAMPLES:
        rows = sample_rows(len(embeddings), MAX_EXAMPLES)
        embeddings, classes = embeddings[rows], classes[rows]
    count = min(NEIGHBOURS, len(embeddings) - 1)
    if count < 1:
        return {"knn_accuracy": 0.0}
    search = NearestNeighbors(n_neighbors=count, metric="cosine").fit(embeddings)
    votes = classes[search.kneighbors(return_distance=False)].astype(np.int64)
    counts = (votes[:, :, None] == np.arange(classes.max() + 1)).sum(1)
    return {"knn_accuracy": float((counts.argmax(1) == classes).mean())}
