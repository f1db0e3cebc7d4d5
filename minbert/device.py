"""Which device the encoder runs on, and what it is bad at."""

from __future__ import annotations

import torch

from common.errors import UserError
from minbert.linear import has_bfloat16


class UnknownDeviceError(UserError):
    """A device that this PyTorch does not find."""

    status = 2


def choose_device(name: str) -> torch.device:
    """The device of this name, `auto` for a GPU if there is one; UnknownDeviceError otherwise."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    known = ["auto", "cpu", *(["cuda", *gpus] if gpus else [])]
    if name not in known:
        raise UnknownDeviceError(f"--device: expected {', '.join(known)}, found {name!r}")
    return torch.device(name)


def warn_if_slow(precision: str, device: torch.device) -> None:
    """Say so where bfloat16 brings nothing."""
    if precision == "bf16" and device.type == "cpu" and not has_bfloat16():
        print(
            "note: this CPU has no bfloat16 instructions; bf16 is computed with rounded fp32 "
            "products here and is no faster than --precision fp32",
            flush=True,
        )
