"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime

BFLOAT16 = ("amx_bf16", "avx512_bf16")  # PyTorch's names of such instructions


def environment(device: str = "cpu") -> dict[str, str | int]:
    """Machine class, versions, date and time, for every file that holds measured figures."""
    import torch

    known = torch.cpu.get_capabilities()
    return {
        "cpu": str(known.get("cpu_name", platform.processor())),
        # How its products of bfloat16 numbers are computed: the greatest difference of a CPU.
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
    """Date and time to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
