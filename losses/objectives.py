"""What a run minimises: the base classes of the objectives that users choose by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from common.errors import UserError
from common.later import Tensor
from common.settings import Settings, setting

TEMPERATURE = 0.05
TEMPERATURE_HELP: dict[str, Any] = {
    "help": "temperature, by which cosines are divided",
    "source": "Gao et al., 2021",
    "metavar": "T",
}


class TrainingObjective(Settings):
    """What a run minimises: an objective of tasks with classes, or one of pre-training.

    `defaults` are settings of the run that this objective changes.
    """

    pretrains: ClassVar[bool] = False
    defaults: ClassVar[dict[str, Any]] = {}


class PretrainObjective(TrainingObjective):
    """An objective of pre-training, with which the encoder is trained before any task.

    `defaults`: batches of 64 and one epoch (Gao et al., 2021, section 4). `of_classes`: it reads
    labelled texts. `of_pairs`: it reads texts that belong together. `compares_examples`: the other
    examples of a batch are negatives. `needs_file`: it reads a file of its own, not tasks.
    """

    defaults: ClassVar[dict[str, Any]] = {"batch_size": 64, "epochs": 1, "optimizer": {"lr": 3e-5}}
    pretrains = True
    of_classes: ClassVar[bool] = False
    of_pairs: ClassVar[bool] = False
    compares_examples: ClassVar[bool] = True
    needs_file: ClassVar[bool] = False

    @property
    def file(self) -> str | None:
        """Return the file with the text; None if the text is that of tasks."""
        return None


ClassLoss = Callable[["Tensor", "Tensor"], "Tensor"]  # embeddings (B, H), classes (B,) -> a scalar


class ClassObjective(PretrainObjective):
    """A loss over the classes of a batch of single texts (SuperConText), which has a name."""

    defaults: ClassVar[dict[str, Any]] = {**PretrainObjective.defaults, "class_balanced": True}
    of_classes = True
    projection_head: Literal["none", "linear", "nonlinear"] = setting(
        "none",
        help="layer between the embeddings and the loss, in training only",
        source="SuperConText, section IV.C",
        flag=False,
    )

    def losses(self) -> tuple[ClassLoss, tuple[int, ClassLoss] | None]:
        """Return the loss, and the loss that replaces it after so many epochs, or None."""
        return self.class_loss, None

    def class_loss(self, embeddings: Tensor, classes: Tensor) -> Tensor:
        """Return the loss of a batch from embeddings (B, H) and classes (B,)."""
        raise UserError(f"objective {self.name}: the class needs a method class_loss")
