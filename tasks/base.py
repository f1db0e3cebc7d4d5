"""Tasks: source of examples, kind, head, losses, and prediction file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from common.errors import UserError
from common.later import Tensor, nn, torch
from common.settings import Settings, as_json, default_of
from tasks.kinds import Kind, Outputs
from tasks.predictions import PredictionFile
from tasks.readers import Examples, Limit, Source

Pair = Literal["bi", "joint"]
BuildHead = Callable[[int], "nn.Module"]
Embeddings = tuple["Tensor", ...]  # one tensor (B, H) per text of an example
Loss = Callable[[Outputs, Embeddings, "Tensor"], "Tensor"]  # outputs, embeddings, targets -> scalar


@dataclass(frozen=True)
class Task:
    """One task of the shared encoder.

    `build_head(H)` returns a module from the embeddings of an example's texts to outputs. `output`
    is None for a task without prediction files. `losses` are named losses that replace the kind's.
    `compares_examples` marks losses that compare the examples of a batch, which is then not split.
    `texts` is the number of texts of an example; `joint` marks pairs that are encoded as one
    sequence with one embedding; `loss_switch` is a number of epochs and the kind's loss after them.
    `views` says how often the texts of a training example are repeated, for other dropout.
    """

    name: str
    kind: Kind
    source: Source
    build_head: BuildHead
    output: PredictionFile | None = None
    losses: Mapping[str, Loss] = field(default_factory=dict)
    compares_examples: bool = False
    joint: bool = False
    texts: int = 1
    loss_switch: tuple[int, Callable[[Outputs, "Tensor"], "Tensor"]] | None = None
    views: int = 1

    @property
    def vectors(self) -> int:
        """Return the number of embeddings of an example."""
        return 1 if self.joint else self.texts

    @property
    def objectives(self) -> tuple[str, ...]:
        """Return the names of the objectives: the task's name, or one name per loss."""
        names = tuple(self.losses)
        return (self.name,) if len(names) < 2 else tuple(f"{self.name}/{n}" for n in names)

    def in_epoch(self, epoch: int) -> "Task":
        """Return the task with the losses of an epoch, counted from 1."""
        if self.loss_switch is None or epoch <= self.loss_switch[0]:
            return self
        return replace(self, kind=replace(self.kind, loss=self.loss_switch[1]))

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        """Return the examples of `train`, `dev` or `test`: all, or `limit` at random."""
        found = self.source.read(folder, split, limit)
        return replace(found, texts=found.texts * self.views) if split == "train" else found

    def compute_losses(
        self, outputs: Outputs, texts: Embeddings, targets: Tensor
    ) -> dict[str, Tensor]:
        """Return the scalar losses of a batch by objective."""
        if not self.losses:
            return {self.name: self.kind.loss(outputs, targets)}
        values = [loss(outputs, texts, targets) for loss in self.losses.values()]
        return dict(zip(self.objectives, values, strict=True))

    def scores(self, head: "nn.Module", texts: Embeddings) -> Tensor:
        """Return class probabilities (B, C) or similarities (B,)."""
        return self.kind.scores(head(*texts))


def lazy_head(name: str, **options: Any) -> BuildHead:
    """Return what builds this class of heads.py, a module that imports PyTorch, for a width."""
    return lambda width: getattr(import_module("tasks.heads"), name)(width, **options)


def example_embedding(texts: Sequence[Tensor]) -> Tensor:
    """Return one vector per example: the text's (B, H), or (u, v, |u - v|) of a pair (B, 3H)."""
    if len(texts) == 1:
        return texts[0]
    u, v = texts
    return torch.cat([u, v, (u - v).abs()], dim=-1)


class TaskOptions(Settings):
    """A task as the configuration has it: its name and options, of which `build` makes a `Task`."""

    def __init_subclass__(cls, *, name: str = "", **more: Any) -> None:
        super().__init_subclass__(name=name, prefix=name and f"{name}_", **more)

    def build(self) -> "Task":
        """Return the task with these options."""
        raise UserError(f"task {self.name}: the class needs a method build")

    @property
    def outputs(self) -> dict[str, Any]:
        """Return the options that decide the outputs of the head, wherever the data are."""
        return {}

    def to_json(self) -> dict[str, Any]:
        """Return the name of the task, and the options that are not the defaults."""
        given = [one.name for one in fields(self) if getattr(self, one.name) != default_of(one)]
        return {"name": self.name, **{key: as_json(getattr(self, key)) for key in given}}
