"""The machine and the versions with which values were measured."""

import os
import platform
import sys
from datetime import UTC, datetime

# PyTorch's names for instructions of this type.
BFLOAT16 = ("amx_bf16", "avx512_bf16", "bf16")


def environment(device: str = "cpu") -> dict[str, str | int]:
    """Return hardware, versions, date and time, for every file with measured values."""
    import torch

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
