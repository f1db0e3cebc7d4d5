"""Objectives of classification tasks that add contrastive terms to cross-entropy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn

from losses import contrastive_objectives, lower_bounds, simcse_loss, supcon_loss
from tasks import PULL_PUSH
from tasks.base import Embeddings, Loss, Task, example_embedding
from tasks.kinds import Outputs
from tasks.labelled_files import Source
from tasks.objectives import CL, LS, SCL, ContrastiveEPO, WithContrast
from tasks.readers import Examples
from tasks.splits import of_each_split


def with_supcon(task: Task, settings: SCL) -> Task:
    """Return a task with the loss (1 - weight) CE + weight SupCon  (Gunel et al., 2021, Eq. 1)."""
    return with_contrast(
        task,
        settings,
        lambda texts, targets: supcon_loss(
            example_embedding(texts), targets, settings.temperature, settings.reduction
        ),
    )


def with_pull_push(task: Task, settings: LS) -> Task:
    """Return a task with the loss (1 - weight) CE + weight (r_1 pull + r_2 push).

    Pull and push are measured from their ideal points  (Moukafih et al., 2022, Eq. 4 to 6). This
    changes no gradient, but makes losses non-negative, as some combiners require.
    """
    first, second = settings.preference

    def contrast(texts: Embeddings, targets: Tensor) -> Tensor:
        pull, push = pull_and_push(task, texts, targets, settings.temperature)
        return first * pull + second * push

    return with_contrast(task, settings, contrast)


def separate_objectives(task: Task, settings: ContrastiveEPO) -> Task:
    """Return a task with cross-entropy, pull and push as separate objectives, for a combiner."""

    def term(place: int) -> Loss:
        return lambda outputs, texts, targets: pull_and_push(
            task, texts, targets, settings.temperature
        )[place]

    def cross_entropy(outputs: Outputs, texts: Embeddings, targets: Tensor) -> Tensor:
        return (1 - settings.weight) * task.kind.loss(outputs, targets)  # also scales the head's

    losses = dict(zip(PULL_PUSH, (cross_entropy, term(0), term(1)), strict=True))
    return replace(task, losses=losses, compares_examples=True)


def with_contrast(
    task: Task, settings: WithContrast, contrast: Callable[[Embeddings, Tensor], Tensor]
) -> Task:
    """Return a task with the loss (1 - weight) CE + weight contrast(embeddings, targets)."""

    def loss(outputs: Outputs, texts: Embeddings, targets: Tensor) -> Tensor:
        contrastive = contrast(texts, targets)
        own = task.kind.loss(outputs, targets)
        return (1 - settings.weight) * own + settings.weight * contrastive

    return replace(task, losses={"loss": loss}, compares_examples=True)


def pull_and_push(
    task: Task, texts: Embeddings, targets: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Return pull and push of a batch, from the ideal points of the task's number of classes."""
    assert task.kind.classes is not None
    pull, push = contrastive_objectives(example_embedding(texts), targets, temperature)
    lowest_pull, lowest_push = lower_bounds(temperature, task.kind.classes)
    return pull - lowest_pull, push - lowest_push


def two_views(source: Source) -> Source:
    """Repeat the texts of training examples, so that dropout makes a second view of each."""

    def make(examples: Examples, split: str, where: str) -> Examples:
        return replace(examples, texts=examples.texts * 2) if split == "train" else examples

    return of_each_split(source, make, row_by_row=True)


class FirstView(nn.Module):
    """A head on the first view of an example, which has `count` embeddings."""

    def __init__(self, head: nn.Module, count: int) -> None:
        super().__init__()
        self.head, self.count = head, count

    def forward(self, *texts: Tensor) -> Outputs:
        return self.head(*texts[: self.count])


def with_infonce(task: Task, settings: CL) -> Task:
    """Return a task with (1 - weight) CE + weight InfoNCE of two views, with in-batch negatives."""
    count = task.vectors

    def contrast(texts: Embeddings, targets: Tensor) -> Tensor:
        views = example_embedding(texts[:count]), example_embedding(texts[count:])
        return simcse_loss(*views, settings.temperature)

    return replace(
        with_contrast(task, settings, contrast),
        source=two_views(task.source),
        build_head=lambda width: FirstView(task.build_head(width), count),
    )
