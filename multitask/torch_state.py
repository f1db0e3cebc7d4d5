"""The state of PyTorch in which a run trains, whatever the calling program has chosen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from common.errors import RunError


@contextmanager
def independent_of_caller() -> Iterator[None]:
    """Train with gradients and without autocast, whatever the caller of `train` has chosen.

    Inside, an autocast of a user's method keeps no converted weights: PyTorch would use them after
    the weights have changed.
    Raise RunError if new tensors have another type or device than in a new process.
    """
    if (dtype := torch.get_default_dtype()) != torch.float32:
        raise RunError(f"default dtype of torch: expected torch.float32, found {dtype}")
    if (device := torch.get_default_device()).type != "cpu":
        advice = "the setting device says where a run trains"
        raise RunError(f"default device of torch: expected cpu, found {device}; {advice}")
    kinds = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    with torch.inference_mode(False), torch.enable_grad(), ExitStack() as stack:
        for kind in kinds:
            stack.enter_context(torch.autocast(kind, enabled=False, cache_enabled=False))
        yield
