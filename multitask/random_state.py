"""PyTorch's random generator, from which dropout is drawn, on the device of a model.

Each step seeds it by the run's seed, the number of the step and the process. A resumed run thus
draws what the run would have drawn, and a checkpoint needs no state of a generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from common.random_generators import generator


def seed_step(seed: int, step: int, rank: int) -> None:
    """Seed the generators of all devices for a step of one process."""
    torch.manual_seed(int(generator(seed, "dropout", step, rank).integers(1 << 63)))


def random_state(device: torch.device) -> Tensor:
    """Return the state of a device's generator."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


@contextmanager
def replayed(state: Tensor, device: torch.device) -> Iterator[None]:
    """Draw the same numbers as after `state`; afterwards, the generator goes on as before."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        if device.type == "cuda":
            torch.cuda.set_rng_state(state, device)
        else:
            torch.set_rng_state(state)
        yield
