"""What a run needs to go on after an epoch: safetensors and JSON, written aside, then renamed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from minbert.errors import UserError
from minbert.json_files import read_json, write_json


class CheckpointError(UserError):
    """A checkpoint that cannot be used."""


def publish(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary folder and put it in the place of `folder` once it is whole."""
    temporary, old = folder.with_name(folder.name + ".tmp"), folder.with_name(folder.name + ".old")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    write(temporary)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    temporary.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def published(folder: Path) -> Path | None:
    """The folder, or the one it was replacing when the process ended; None without either."""
    for candidate in (folder, folder.with_name(folder.name + ".old")):
        if candidate.exists():
            return candidate
    return None


def save_training(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    others: Mapping[str, Mapping[str, Tensor]] | None = None,
) -> None:
    """Weights, optimiser moments, `state` (JSON) and named tensors of `others` into `folder`."""

    def write(target: Path) -> None:
        tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
        tensors |= {
            f"optimizer/{index}/{name}": value
            for index, moments in optimizer.state_dict()["state"].items()
            for name, value in moments.items()
        }
        tensors |= {
            f"{name}/{key}": value
            for name, several in (others or {}).items()
            for key, value in several.items()
        }
        save_file(
            {n: v.detach().cpu().contiguous() for n, v in tensors.items()},
            target / "state.safetensors",
        )
        write_json(target / "state.json", dict(state))

    publish(folder, write)


def load_tensors(file: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file; CheckpointError in one line if it is damaged or missing."""
    try:
        return load_file(file)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{file}: the checkpoint cannot be read: {error}") from error


def load_training(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]]]:
    """Restore what `save_training` wrote into model and optimiser; its `state` and `others`."""
    tensors = load_tensors(folder / "state.safetensors")
    state = read_json(folder / "state.json", CheckpointError)
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}}
    for name, value in tensors.items():
        part, rest = name.split("/", 1)
        parts.setdefault(part, {})[rest] = value
    model.load_state_dict(parts.pop("model"))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in parts.pop("optimizer").items():
        index, kind = name.split("/", 1)
        moments.setdefault(int(index), {})[kind] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    return state, parts
