"""What a task is: where its files are, what its head computes, how it is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor, nn

from tasks.kinds import Kind, Outputs
from tasks.labelled_files import Source
from tasks.predictions import PredictionFile
from tasks.readers import Examples, Limit

Embeddings = tuple[Tensor, ...]  # one (B, H) tensor a text of the examples
Loss = Callable[[Outputs, Embeddings, Tensor], Tensor]  # outputs, embeddings, targets -> scalar


@dataclass(frozen=True)
class Task:
    """One task of the shared encoder.

    `build_head(H)` makes a module from the embeddings of an example's texts to outputs; `output` is
    None for a task whose predictions nobody asks for. `several` are named losses where they are not
    its kind's alone: of the head's outputs, the texts' embeddings and the targets.
    `in_batch` says that losses compare the examples of a batch: they are not a mean over examples,
    and a batch goes through them whole. An example has so many `texts`; `joint` says that both of
    a pair share a sequence, and one embedding. `later` is a number of epochs, and the
    loss that takes over after them, of a task with one: gradient rows keep their places.
    """

    name: str
    kind: Kind
    source: Source
    build_head: Callable[[int], nn.Module]
    output: PredictionFile | None = None
    several: Mapping[str, Loss] = field(default_factory=dict)
    in_batch: bool = False
    joint: bool = False
    texts: int = 1
    later: tuple[int, Loss] | None = None

    def __post_init__(self) -> None:
        assert self.later is None or len(self.several) < 2, "one loss takes over from one"

    @property
    def vectors(self) -> int:
        """Embeddings of an example."""
        return 1 if self.joint else self.texts

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of what is minimised: the task's, or one a loss where it has several."""
        names = tuple(self.several)
        return (self.name,) if len(names) < 2 else tuple(f"{self.name}/{n}" for n in names)

    def in_epoch(self, epoch: int) -> Task:
        """The task with the losses of an epoch, from 1."""
        if self.later is None or epoch <= self.later[0]:
            return self
        return replace(self, several={self.name: self.later[1]})

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        """Examples of `train`, `dev` or `test`, all or `limit` drawn at random.

        Those of `test` may have no labels.
        """
        return self.source.read(folder, split, limit)

    def losses(self, outputs: Outputs, texts: Embeddings, targets: Tensor) -> dict[str, Tensor]:
        """Scalar losses of a batch, from the head's outputs and the embeddings, by objective."""
        functions = tuple(self.several.values()) or (of_outputs(self.kind.loss),)
        values = [loss(outputs, texts, targets) for loss in functions]
        return dict(zip(self.objectives, values, strict=True))

    def scores(self, head: nn.Module, texts: Embeddings) -> Tensor:
        """(B, C) class probabilities or (B,) similarities."""
        return self.kind.scores(head(*texts))


def of_outputs(loss: Callable[[Outputs, Tensor], Tensor]) -> Loss:
    """A kind's loss among several of a task."""
    return lambda outputs, texts, targets: loss(outputs, targets)


def of_texts(loss: Callable[[Embeddings, Tensor], Tensor]) -> Loss:
    """A loss of the embeddings alone among several of a task."""
    return lambda outputs, texts, targets: loss(texts, targets)
