"""Objectives of classification tasks; those with embeddings of labels are in lacon.py."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from common.errors import RunError, UserError, first_names
from common.later import F, Tensor, nn, torch
from common.settings import Fraction, Positive, setting
from losses import contrastive_objectives, lower_bounds, simcse_loss, supcon_loss
from losses.objectives import TrainingObjective
from tasks.base import Embeddings, Loss, Task, example_embedding
from tasks.kinds import Kind, Outputs

PULL_PUSH = ("cross_entropy", "pull", "push")  # objectives of a task with SCL-MOO's
SOURCE = "Moukafih et al., 2022, section 4.1"
Share = Annotated[float, Meta(ge=0, lt=1)]  # below 1, with which no head is trained


class Objective(TrainingObjective):
    """An objective that replaces the cross-entropy of classification tasks."""

    trains_only_heads: ClassVar[bool] = False  # can train heads on a frozen encoder
    own_head: ClassVar[bool] = False
    own_loss: ClassVar[bool] = False  # does not use the loss of the task's kind
    single_embedding: ClassVar[bool] = False  # accepts only one embedding per example

    def of_task(self, task: Task) -> Task:
        """Return a task with classes, trained by this objective."""
        raise UserError(f"objective {self.name}: the class needs a method of_task")


def with_objective(task: Task, objective: Objective) -> Task:
    """Return the task trained by an objective; a task without classes is unchanged."""
    if task.kind.classes is None:
        return task
    found = objective.of_task(task)
    if (name := getattr(found, "name", None)) != task.name:
        line = f"of_task must return the task {task.name}, not {name}"
        raise UserError(f"objective {objective.name}: {line}")
    return found


class WithContrast(Objective, prefix="scl_"):
    """Cross-entropy with contrastive terms."""

    temperature: Positive = setting(
        0.3, help="temperature, which divides the cosines", source=SOURCE
    )
    weight: Share = setting(
        0.3, help="share of the contrastive terms; the rest is cross-entropy", source=SOURCE
    )

    def contrast(self, task: Task, texts: Embeddings, targets: Tensor) -> Tensor:
        """Return the contrastive terms of a batch."""
        raise NotImplementedError

    def of_task(self, task: Task) -> Task:
        """Return a task with the loss (1 - weight) CE + weight contrast."""

        def loss(outputs: Outputs, texts: Embeddings, targets: Tensor) -> Tensor:
            contrastive = self.contrast(task, texts, targets)
            own = task.kind.loss(outputs, targets)
            return (1 - self.weight) * own + self.weight * contrastive

        return replace(task, losses={"loss": loss}, compares_examples=True)


class SCL(WithContrast, name="scl"):
    """Cross-entropy and the supervised contrastive loss (Gunel et al., 2021)."""

    reduction: Literal["mean", "sum"] = setting(
        "mean",
        help="mean or sum of scl over the anchors of a batch; SCL-MOO and LaCon print the sum",
        flag=False,
    )

    def contrast(self, task: Task, texts: Embeddings, targets: Tensor) -> Tensor:
        return supcon_loss(example_embedding(texts), targets, self.temperature, self.reduction)


class WithPullPush(WithContrast):
    """Cross-entropy with pull and push, and a preference between these two."""

    preference: Fraction = setting(
        0.1, help="preference for pull; the rest is for push", metavar="R", source=SOURCE
    )

    @property
    def shares(self) -> tuple[float, float]:
        """The preferences for pull and push, with the sum 1."""
        return self.preference, 1 - self.preference

    def pull_and_push(
        self, task: Task, texts: Embeddings, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return pull and push of a batch above their ideal points, as combiners require."""
        found = contrastive_objectives(example_embedding(texts), targets, self.temperature)
        lowest = lower_bounds(self.temperature, len(task.kind.names))
        return found[0] - lowest[0], found[1] - lowest[1]


class LS(WithPullPush, name="ls"):
    """Cross-entropy, and pull and push weighted by a preference (SCL-MOO, Eq. 4 to 6)."""

    def contrast(self, task: Task, texts: Embeddings, targets: Tensor) -> Tensor:
        pull, push = self.pull_and_push(task, texts, targets)
        return self.shares[0] * pull + self.shares[1] * push


class ContrastiveEPO(WithPullPush, name="epo"):
    """Cross-entropy, and pull and push balanced by EPO (SCL-MOO, Algorithm 1)."""

    inputs: Literal["contrastive", "combined"] = setting(
        "contrastive",
        help="losses that EPO balances: pull and push, or each plus cross-entropy",
        flag=False,
    )

    def faults(self) -> Iterator[str]:
        if not all(self.shares):
            found = f"{self.preference:g}"
            yield f"scl_preference: must be between 0 and 1 for EPO, found {found}"

    def of_task(self, task: Task) -> Task:
        def cross_entropy(outputs: Outputs, texts: Embeddings, targets: Tensor) -> Tensor:
            return (1 - self.weight) * task.kind.loss(outputs, targets)  # also scales the head's

        def term(place: int) -> Loss:
            return lambda outputs, texts, targets: self.pull_and_push(task, texts, targets)[place]

        losses = dict(zip(PULL_PUSH, (cross_entropy, term(0), term(1)), strict=True))
        return replace(task, losses=losses, compares_examples=True)


class CL(WithContrast, name="cl"):
    """Cross-entropy, and SimCSE's loss on a second view of each example (ConSERT).

    Training texts are repeated, so that dropout makes two views; the head reads the first.
    """

    def contrast(self, task: Task, texts: Embeddings, targets: Tensor) -> Tensor:
        one, two = texts[: task.vectors], texts[task.vectors :]
        return simcse_loss(example_embedding(one), example_embedding(two), self.temperature)

    def of_task(self, task: Task) -> Task:
        def build_head(width: int) -> nn.Module:
            head = task.build_head(width)
            head.register_forward_pre_hook(lambda head, texts: texts[: task.vectors])
            return head

        return replace(super().of_task(task), views=2, build_head=build_head)


def with_smoothing(task: Task, share: float) -> Task:
    """Return a task with smoothed labels (Szegedy et al., 2016, section 7)."""
    loss = partial(F.cross_entropy, label_smoothing=share)
    return replace(task, kind=replace(task.kind, loss=loss))


def with_class_weights(task: Task, targets: np.ndarray) -> tuple[Task, str]:
    """Return a task whose loss weights its classes, and a line with the weights.

    `targets` (n,) are those of its training examples. The loss is a mean over examples, not over
    weights as in `F.cross_entropy`, so that the gradient of a batch is the mean of its parts'.
    """
    if task.losses or task.kind.loss is not F.cross_entropy:
        raise RunError(f"{task.name}: class_weights needs a task trained by cross-entropy")
    weights = balanced_weights(task.kind, targets)

    def loss(outputs: Outputs, texts: Embeddings, found: Tensor) -> Tensor:
        given = torch.from_numpy(weights).to(outputs)
        return F.cross_entropy(outputs, found, given, reduction="none").mean()

    pairs = [f"{name} {weight:.3g}" for name, weight in zip(task.kind.names, weights, strict=True)]
    line = f"weights of classes: {first_names(pairs, 12)}"
    return replace(task, losses={task.name: loss}), line


def balanced_weights(kind: Kind, targets: np.ndarray) -> np.ndarray:
    """Return n / (C n_c) of each class (King and Zeng, 2001); 1 for a class without examples."""
    counts = np.bincount(targets.astype(np.int64), minlength=kind.classes or 0)
    return np.where(counts > 0, len(targets) / (counts > 0).sum() / np.maximum(counts, 1), 1.0)
