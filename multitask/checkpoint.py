"""The checkpoints of a run: the weights of its best epoch, and what it resumes from."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from common.errors import RunError, one_line
from common.files import atomic_path, complete_folder, read_state, remove
from multitask.runs import Run

TRAINING = "training.pt"


def save(run: Run, kind: str, write: Callable[[Path], None], state: Mapping[str, Any]) -> None:
    """Let `write` fill a checkpoint `best` or `last` under a new number; then delete the old one.

    After an error, for example because the disk is full, the old one stays.
    """
    old = run.checkpoints(kind)
    number = int(old[-1].name.partition("-")[2] or 0) + 1 if old else 1
    new = run.folder / f"{kind}-{number:04}"
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
    run: Run,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
) -> None:
    """Save the states of model and optimiser, and `state`, which is JSON."""
    states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    def write(folder: Path) -> None:
        with atomic_path(folder / TRAINING) as new, new.open("wb") as file:
            try:
                torch.save(states, file)
            except RuntimeError as error:  # after the OSError of a full disk
                raise error.__context__ or error from None

    save(run, "last", write, state)


def load_last(
    run: Run, model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any] | None:
    """Load what `save_last` wrote into model and optimiser; return `state`.

    Return None without a checkpoint; raise RunError for a damaged one.
    """
    if (folder := run.newest("last")) is None:
        return None
    state = read_state(folder, RunError)
    try:
        states = torch.load(folder / TRAINING, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # of an optimiser with a state of its own kind
        raise RunError(f"{folder / TRAINING}: {one_line(str(error))}") from error
    model.load_state_dict(states["model"])
    optimizer.load_state_dict(states["optimizer"])
    return state
