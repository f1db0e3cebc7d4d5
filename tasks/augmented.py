"""CE + CL: cross-entropy, and SimCSE's loss on a second view of each example (LaCon's baseline).

After ConSERT (Yan et al., 2021), which trains both jointly, with dropout as the augmentation (Gao
et al., 2021), as Zhang et al. (2022, section 3.2) have it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor, nn

from losses import simcse_loss
from tasks.base import Embeddings, Task
from tasks.contrastive import example_embedding
from tasks.kinds import Outputs
from tasks.labelled_files import Source
from tasks.objectives import CL
from tasks.readers import Examples, Limit


@dataclass(frozen=True)
class Twice:
    """Training examples with each text a second time, of which dropout makes another view."""

    source: Source

    @property
    def splits(self) -> tuple[str, ...]:
        return self.source.splits

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        examples = self.source.read(folder, split, limit)
        return replace(examples, texts=examples.texts * 2) if split == "train" else examples

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, split)


class FirstView(nn.Module):
    """A head that looks at the first view of an example, of `count` texts."""

    def __init__(self, head: nn.Module, count: int) -> None:
        super().__init__()
        self.head, self.count = head, count

    def forward(self, *texts: Tensor) -> Outputs:
        return self.head(*texts[: self.count])


def augmented(task: Task, settings: CL) -> Task:
    """(1 - weight) CE + weight InfoNCE of both views, the other examples being negatives."""
    count = task.vectors

    def loss(outputs: Outputs, texts: Embeddings, targets: Tensor) -> Tensor:
        views = example_embedding(texts[:count]), example_embedding(texts[count:])
        contrast = simcse_loss(*views, settings.temperature)
        own = task.kind.loss(outputs, targets)
        return (1 - settings.weight) * own + settings.weight * contrast

    return replace(
        task,
        source=Twice(task.source),
        build_head=lambda width: FirstView(task.build_head(width), count),
        several={"loss": loss},
        in_batch=True,
    )
