"""The device of a model, a note on its precision, and the machine behind measured values."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime

import torch

from common.errors import SettingsError
from minbert.linear import BFLOAT16, has_bfloat16


def choose_device(name: str) -> torch.device:
    """Return the named device, for `auto` a GPU if available; raise SettingsError if none."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    known = ["auto", "cpu", *(["cuda", *gpus] if gpus else [])]
    if name not in known:
        raise SettingsError(f"--device: {name!r} is not available; choose from {', '.join(known)}")
    return torch.device(name)


def warn_if_slow(precision: str, device: torch.device) -> None:
    """Print a note if bfloat16 is requested but not faster."""
    if precision == "bf16" and device.type == "cpu" and not has_bfloat16():
        print(
            "note: this CPU has no bfloat16 instructions; use --precision fp32, which is faster",
            flush=True,
        )


def environment(device: str = "cpu") -> dict[str, str | int]:
    """Return hardware, versions, date and time, for every file with measured values."""
    known = torch.cpu.get_capabilities()
    return {
        "cpu": str(known.get("cpu_name", platform.processor())),
        # Hardware support for products of bfloat16: the largest difference between CPUs.
        "bfloat16": next((name for name in BFLOAT16 if known.get(name)), "emulated"),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(device) if device.startswith("cuda") else "none",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": sys.platform,
        "date": now(),
    }


def now() -> str:
    """Return date and time to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
