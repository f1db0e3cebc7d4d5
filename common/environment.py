"""The machine and the versions with which values were measured."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

# PyTorch's names for instructions of this type.
BFLOAT16 = ("amx_bf16", "avx512_bf16", "bf16")


def environment(device: str = "cpu") -> dict[str, str | int]:
    """Return hardware, versions, date and time, for every file with measured values."""
    import torch

    known = torch.cpu.get_capabilities()
    return {
        "cpu": str(known.get("cpu_name", platform.processor())),
        # Hardware support for products of bfloat16: the largest difference between CPUs.
        "bfloat16": bfloat16_of(known),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(device) if device.startswith("cuda") else "none",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": sys.platform,
        "date": now(),
    }


def bfloat16_of(capabilities: Mapping[str, Any]) -> str:
    """Return the bfloat16 instructions among a CPU's capabilities, as PyTorch names them.

    `emulated` without such instructions; `unknown` for CPUs other than x86 and ARM, most of which
    have them.
    """
    known = capabilities.get("architecture") == "x86_64" or "bf16" in capabilities
    found = (name for name in BFLOAT16 if capabilities.get(name))
    return next(found, "emulated" if known else "unknown")


def now() -> str:
    """Return date and time to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
