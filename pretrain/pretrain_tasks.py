"""Pre-training objectives as tasks of the training loop: source, head, loss and evaluation.

Objectives about texts form one task, evaluated on STS dev. Objectives about classes (SuperConText;
Moukafih, Sbihi, Ghogho and Smaili, 2023) replace the losses of a configuration's tasks; their
encoder is evaluated by logistic regression on frozen embeddings (`probe.py`) or by fine-tuning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from losses.objectives import ClassLoss, ClassObjective, PretrainObjective
from multitask.config_tasks import plain_tasks
from multitask.settings.config import RunConfig
from pretrain.objectives import TextObjective
from tasks import CS224N, SAME_MEANING, SAMPLE, build_task, data_folder
from tasks.base import Task
from tasks.kinds import Kind, Outputs
from tasks.metrics import pearson, spearman
from tasks.readers import Examples, limit_of, sample_rows
from tasks.splits import normalise_text
from tasks.tables import DataError

NEIGHBOURS, MAX_EXAMPLES = 10, 5000
PROJECTED = 512  # width of the projection of classes


class Projection(nn.Module):
    """The embeddings of an example's texts; in training only, through a layer.

    All texts share the layer (Gao et al., 2021, section 6.3).
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *texts: Tensor) -> Outputs:
        found = tuple(map(self.layer, texts)) if self.training else texts
        return found if len(found) > 1 else found[0]


def text_projection(projection: bool, width: int) -> Projection:
    """Return SimCSE's layer, or none."""
    layer = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if projection else nn.Identity()
    return Projection(layer)


def class_projection(kind: str, width: int) -> Projection:
    """Return the layers of a loss of classes (SuperConText, section IV.C).

    `kind` is none, linear (one layer), or nonlinear (two layers with ReLU between them).
    """
    hidden = [nn.Linear(width, width, bias=False), nn.ReLU()] if kind == "nonlinear" else []
    last = nn.Identity() if kind == "none" else nn.Linear(width, PROJECTED, bias=False)
    return Projection(nn.Sequential(*hidden, last))


def pretraining_tasks(config: RunConfig) -> dict[str, Task]:
    """Return the tasks of a pre-training run by name."""
    objective: Any = config.objective
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
        build_head=partial(text_projection, objective.projection),
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
            build_head=partial(class_projection, objective.projection_head),
            output=None,
            losses={},
            compares_examples=True,
            loss_switch=later,
        )
    return found


def embedding_kind(loss: Callable[[Any, Tensor], Tensor] | ClassLoss, **functions: Any) -> Kind:
    """Return a kind whose scores are embeddings, which are also its predictions."""
    return Kind(loss=loss, predictions=lambda scores: scores, **functions)


def overlap_lines(config: RunConfig, tasks: Mapping[str, Task]) -> Iterator[str]:
    """Yield one line per task: how many of its dev and test sentences are in the training text."""
    folder, objective = data_folder(config.data), config.objective
    assert isinstance(objective, PretrainObjective)
    if objective.file is not None and config.data == SAMPLE:
        yield "dev is the STS of the bundled sample, made from templates: its scores mean little"
    examples = [
        task.read(folder, "train", limit_of(config.limit, task.name)) for task in tasks.values()
    ]
    known = distinct_texts(examples)
    # For pre-training on classes also the dev and test files of its own tasks.
    own = config.tasks if objective.of_classes else ()
    for name in dict.fromkeys((*CS224N, *own)):
        task = config.tasks[name].build() if name in config.tasks else build_task(name)
        held = [split for split in task.source.splits if split != "train"]
        try:
            shared = {one: len(known & distinct_texts([task.read(folder, one)])) for one in held}
        except DataError as error:
            yield f"overlap with {name}: unknown ({error})"
            continue
        found = ", ".join(f"{count:,} of {split}" for split, count in shared.items())
        yield f"sentences of {name} that the training text contains: {found}"


def distinct_texts(several: Iterable[Examples]) -> set[str]:
    """Return the distinct texts as `normalise_text` returns them, without the empty one."""
    found = (text for examples in several for column in examples.texts for text in column)
    return {normalise_text(text) for text in found} - {""}


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
