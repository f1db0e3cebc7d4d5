"""The device of a model, and a note on its precision."""

from __future__ import annotations

import torch

from common.errors import SettingsError
from minbert.linear import has_bfloat16


def choose_device(name: str) -> torch.device:
    """Return the named device, for `auto` a GPU if available; raise SettingsError if none."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    known = ["auto", "cpu", *(["cuda", *gpus] if gpus else [])]
    if name not in known:
        raise SettingsError(f"--device: expected {', '.join(known)}, found {name!r}")
    return torch.device(name)


def warn_if_slow(precision: str, device: torch.device) -> None:
    """Print a note if bfloat16 is requested but not faster."""
    if precision == "bf16" and device.type == "cpu" and not has_bfloat16():
        print(
            "note: this CPU has no bfloat16 instructions; use --precision fp32, which is faster",
            flush=True,
        )
