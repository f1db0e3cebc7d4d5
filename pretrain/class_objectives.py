"""The objectives of pre-training on classes, and their settings (SuperConText and its rivals)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from common.errors import UserError
from common.settings import Cosine, Count, NonNegativeInt, Positive, Ratio, setting
from pretrain.objectives import TEMPERATURE, TEMPERATURE_HELP, PretrainObjective
from tasks.base import Task

if TYPE_CHECKING:
    from torch import Tensor

ClassLoss = Callable[["Tensor", "Tensor"], "Tensor"]  # embeddings (B, H), classes (B,) -> a scalar


class ClassObjective(PretrainObjective):
    """An objective about the classes of tasks with single texts (SuperConText)."""

    defaults: ClassVar[Mapping[str, Any]] = {**PretrainObjective.defaults, "class_balanced": True}
    of_classes = True
    projection_head: Literal["none", "linear", "nonlinear"] = setting(
        "none",
        help="layer between embeddings and an objective of classes, in training only",
        source="SuperConText, section IV.C",
    )

    @property
    def adds_layer(self) -> bool:
        return self.projection_head != "none"

    def tasks(self, config: Any) -> dict[str, Task]:
        from pretrain.pretrain_tasks import contrastive_tasks

        return contrastive_tasks(self, config)

    def losses(self) -> tuple[ClassLoss, tuple[int, ClassLoss] | None]:
        """Return the loss, and the loss that replaces it after so many epochs, or None."""
        return self.class_loss, None

    def class_loss(self, embeddings: Tensor, classes: Tensor) -> Tensor:
        """Return the loss of a batch from embeddings (B, H) and classes (B,)."""
        raise UserError(f"objective {self.name}: expected class_loss")


class SuperLoss(ClassObjective, name="superloss"):
    """Texts are nearer to their class than to others, on average (SuperConText)."""

    contrast_temperature: Positive = setting(TEMPERATURE, **TEMPERATURE_HELP)
    super_loss: Literal["algorithm1", "equation8"] = setting(
        "algorithm1", help="variant of the loss: the paper's algorithm, or its equation"
    )
    positives: Count | None = setting(
        None, help="compare an anchor with at most N examples of its class, the first in the batch"
    )
    negatives: Count | None = setting(
        None,
        help="compare an anchor with at most N examples of other classes, the first in the batch",
    )
    hard_top_k: Count | None = setting(None, help="only the N nearest of an anchor's negatives")
    hard_threshold: Cosine | None = setting(
        None, help="only negatives of at least this cosine, or else the nearest", metavar="X"
    )
    hard_top_fraction: Ratio | None = setting(None, help="only the nearest share of the negatives")
    hard_after: NonNegativeInt = setting(
        0, help="epochs with all negatives before only the hard ones count"
    )

    @property
    def hard(self) -> dict[str, Any]:
        """Return the selection of hard negatives as keywords of `losses.super_loss`."""
        found = {n: getattr(self, f"hard_{n}") for n in ("top_k", "threshold", "top_fraction")}
        return {name: value for name, value in found.items() if value is not None}

    def faults(self) -> Iterator[str]:
        if len(self.hard) > 1:
            names = " and ".join(f"hard_{name}" for name in self.hard)
            yield f"{names}: expected at most one of them"
        if self.hard_after and not self.hard:
            yield "hard_after: expected hard_top_k, hard_threshold or hard_top_fraction, found none"

    def length_faults(self, epochs: int) -> Iterator[str]:
        if self.hard_after and self.hard_after >= epochs:
            yield f"hard_after: expected fewer than epochs {epochs}, found {self.hard_after}"

    def class_loss(self, embeddings: Tensor, classes: Tensor, **hard: Any) -> Tensor:
        from torch.nn import functional

        from losses import super_loss

        unit = functional.normalize(embeddings, dim=-1)
        hard |= {"positives": self.positives, "negatives": self.negatives}
        return super_loss(unit, classes, self.contrast_temperature, self.super_loss, **hard)

    def losses(self) -> tuple[ClassLoss, tuple[int, ClassLoss] | None]:
        with_hard = partial(self.class_loss, **self.hard)
        if not self.hard_after:
            return with_hard, None
        return self.class_loss, (self.hard_after, with_hard)


class SupCon(ClassObjective, name="supcon"):
    """Each text finds every other of its class (Khosla et al., 2020)."""

    contrast_temperature: Positive = setting(TEMPERATURE, **TEMPERATURE_HELP)

    def class_loss(self, embeddings: Tensor, classes: Tensor) -> Tensor:
        from losses import supcon_loss

        return supcon_loss(embeddings, classes, self.contrast_temperature)


class ClassTriplet(ClassObjective, name="class-triplet"):
    """A text is nearer to each of its class than to any other, by a margin."""

    margin: Positive = setting(0.5, help="margin in distances", source="our choice")

    def class_loss(self, embeddings: Tensor, classes: Tensor) -> Tensor:
        from losses import triplet_loss

        return triplet_loss(embeddings, classes, self.margin)


class NPair(ClassObjective, name="npair"):
    """Of two texts of each class, the first finds the second (Sohn, 2016)."""

    two_of_each_class = True

    def class_loss(self, embeddings: Tensor, classes: Tensor) -> Tensor:
        from losses import every_npair_loss

        # Inner products, as the paper of the loss has them: cosines would be too near each other.
        return every_npair_loss(embeddings, classes)
