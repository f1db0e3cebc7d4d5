"""What a checkpoint keeps of an optimiser beside the tensors of its state: numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from common.errors import RunError


def numbers_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return the numbers in the parameter groups and in the state, by the parameter's index.

    Some optimisers keep numbers that change in their groups. Raise RunError for anything but
    tensors, numbers and None in the state.
    """
    numbers: dict[str, dict[str, float | None]] = {}
    for index, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            if isinstance(value, Tensor):
                continue
            number = number_of(value)
            if number is None and value is not None:
                expected = "expected tensors and numbers in its state"
                shown = f"found {key}: {type(value).__name__}"
                raise RunError(f"optimizer {type(optimizer).__name__}: {expected}, {shown}")
            numbers.setdefault(str(index), {})[key] = number
    groups = [
        {key: number for key, value in group.items() if (number := number_of(value)) is not None}
        for group in optimizer.param_groups
    ]
    return {"groups": groups, "state": numbers}


def number_of(value: Any) -> float | None:
    """Return a number, also one of NumPy or a tensor of one number, for JSON; else None."""
    if getattr(value, "shape", None) == ():
        value = value.item()
    return value if isinstance(value, int | float) else None


def with_numbers(state: dict[str, Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return an optimiser's `state_dict` with the numbers of `numbers_of`."""
    for group, stored in zip(state["param_groups"], numbers["groups"], strict=True):
        for key, number in stored.items():
            if isinstance(fresh := group.get(key), Tensor):
                fresh.fill_(number)
            else:
                group[key] = number
    for index, stored in numbers["state"].items():
        state["state"].setdefault(int(index), {}).update(stored)
    return state
