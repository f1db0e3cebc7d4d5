"""Checks of what losses are given; PyTorch would broadcast wrong shapes to wrong values."""

from __future__ import annotations

from common.later import Tensor


def same_shape(one: Tensor, other: Tensor) -> None:
    """Raise ValueError for different shapes."""
    if one.shape != other.shape:
        raise ValueError(
            f"expected two of the same shape, found {tuple(one.shape)} and {tuple(other.shape)}"
        )


def check_labels(labels: Tensor, count: int, name: str = "labels") -> None:
    """Raise ValueError unless there is one label for each of `count` rows, in one dimension."""
    if labels.shape != (count,):
        raise ValueError(f"{name}: expected shape {(count,)}, found {tuple(labels.shape)}")


def check_temperature(temperature: float) -> None:
    """Raise ValueError for a temperature that is not above 0."""
    if not temperature > 0:
        raise ValueError(f"temperature: expected a number above 0, found {temperature}")
