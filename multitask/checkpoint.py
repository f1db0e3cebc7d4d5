"""The checkpoints of a run: the weights of its best epoch, and what it resumes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from common.errors import RunError
from common.files import complete_folder, remove
from minbert.weights import read_tensors, save_tensors
from multitask.run_folder import RunFolder

TENSORS = "training.safetensors"
Tensors = Mapping[str, Mapping[str, Tensor]]  # by owner and name


def save(
    run: RunFolder, kind: str, write: Callable[[Path], None], state: Mapping[str, Any]
) -> None:
    """Let `write` fill a checkpoint `best` or `last` under a new number; then delete the old one.

    After an error, for example because the disk is full, the old one stays.
    """
    old = run.checkpoints(kind)
    number = int(old[-1].name.partition("-")[2] or 0) + 1 if old else 1
    new = run.path / f"{kind}-{number:04}"
    new.mkdir(parents=True)
    try:
        write(new)
        complete_folder(new, state)
    except BaseException:
        remove(new)
        raise
    for one in old:
        remove(one)


def save_last(
    run: RunFolder,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    others: Tensors,
) -> None:
    """Save weights, the optimiser's state, `state` (JSON) and the tensors of `others`."""
    moments = {str(i): one for i, one in optimizer.state_dict()["state"].items()}
    parts = {"model": {"": model.state_dict()}, "optimizer": moments, "others": others}
    tensors = {
        f"{part}/{owner}/{key}": value.detach().cpu().contiguous()
        for part, owners in parts.items()
        for owner, several in owners.items()
        for key, value in several.items()
        if isinstance(value, Tensor)
    }
    state = {**state, "optimizer": numbers_of(optimizer)}
    save(run, "last", lambda folder: save_tensors(tensors, folder / TENSORS), state)


def load_last(
    run: RunFolder,
    config: Mapping[str, Any],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> tuple[dict[str, Any], Tensors] | None:
    """Load what `save_last` wrote into model and optimiser; return `state` and `others`.

    Return None without a checkpoint; raise RunError for one that is damaged or of another run.
    """
    if (folder := run.newest("last")) is None:
        return None
    state = run.state(folder, config)
    parts: Any = defaultdict(lambda: defaultdict(dict))
    for name, value in read_tensors(folder / TENSORS, RunError).items():
        part, owner, key = name.split("/", 2)
        parts[part][owner][key] = value
    model.load_state_dict(parts["model"][""])
    numbers, stored = state.pop("optimizer"), optimizer.state_dict()
    for group, kept in zip(stored["param_groups"], numbers["groups"], strict=True):
        for key, number in kept.items():
            if isinstance(group.get(key), Tensor):
                group[key].fill_(number)
            else:
                group[key] = number
    owners = parts["optimizer"].keys() | numbers["state"].keys()
    stored["state"] = {
        int(one): parts["optimizer"][one] | numbers["state"].get(one, {}) for one in owners
    }
    optimizer.load_state_dict(stored)
    return state, parts["others"]


def numbers_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return the numbers in the parameter groups, which may change, and in the state.

    Raise RunError for anything but tensors, numbers and None in the state.
    """
    state: dict[str, dict[str, Any]] = {}
    for index, one in optimizer.state_dict()["state"].items():
        for key, value in one.items():
            if not isinstance(value, Tensor):
                number = state.setdefault(str(index), {})[key] = plain(value)
                if not isinstance(number, int | float | None):
                    line = f"expected tensors and numbers in its state, found {key}: {value!r:.60}"
                    raise RunError(f"optimizer {type(optimizer).__name__}: {line}")
    groups = [
        {key: plain(one) for key, one in group.items() if isinstance(plain(one), int | float)}
        for group in optimizer.param_groups
    ]
    return {"groups": groups, "state": state}


def plain(value: Any) -> Any:
    """Return a number of NumPy, or a tensor of one number, as one of Python."""
    return value.item() if getattr(value, "shape", None) == () else value
