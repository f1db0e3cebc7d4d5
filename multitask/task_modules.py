"""Modules of single tasks: their initial weights, their size, and their files."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import torch
from torch import Tensor, nn

from common.errors import RunError
from minbert.weights import check_weights, read_tensors


@contextmanager
def initial_weights(purpose: str) -> Iterator[None]:
    """Draw weights from a generator of their own, whatever the other tasks of the run are."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(crc32(purpose.encode()))  # the generator takes at most 32 bits
        yield


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def read_task_modules(modules: nn.ModuleDict, file: Path) -> dict[str, Tensor]:
    """Return the tensors of a file of modules by task; raise RunError if unusable."""
    saved = read_tensors(file, RunError)
    weights = [n for n, value in modules.state_dict().items() if value.is_floating_point()]
    check_weights({n: saved[n] for n in weights if n in saved}, file, RunError)
    return saved


def load_matching(modules: nn.ModuleDict, file: Path, names: Container[str]) -> list[str]:
    """Load the modules of these tasks if their shapes match; return the tasks."""
    saved = read_task_modules(modules, file)
    taken = []
    for name, module in modules.items():
        if name not in names:
            continue
        own = {
            key.removeprefix(f"{name}."): value
            for key, value in saved.items()
            if key.startswith(f"{name}.")
        }
        shapes = {key: value.shape for key, value in module.state_dict().items()}
        if own and {key: value.shape for key, value in own.items()} == shapes:
            module.load_state_dict(own)
            taken.append(name)
    return taken
