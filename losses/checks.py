"""What several losses share: checks of shapes, and the loss of a batch without terms."""

from __future__ import annotations

from common.later import Tensor


def same_shape(one: Tensor, other: Tensor) -> None:
    """Raise ValueError for different shapes."""
    if one.shape != other.shape:
        raise ValueError(f"expected equal shapes, found {tuple(one.shape)}, {tuple(other.shape)}")


def check_labels(labels: Tensor, count: int, name: str = "labels") -> None:
    """Raise ValueError unless there is one label for each of `count` rows, in one dimension."""
    if labels.shape != (count,):
        raise ValueError(f"{name}: expected shape {(count,)}, found {tuple(labels.shape)}")


def zero_loss(embeddings: Tensor) -> Tensor:
    """Return a loss of 0 with a zero gradient, for a batch without terms."""
    return embeddings.sum() * 0
