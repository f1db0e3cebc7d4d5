"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime


def environment(device: str = "cpu") -> dict[str, str | int]:
    """Machine class, versions and date, for every file that holds measured figures."""
    import torch

    return {
        "cpu": str(torch.cpu.get_capabilities().get("cpu_name", platform.processor())),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(device) if device.startswith("cuda") else "none",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": sys.platform,
        "date": datetime.now(UTC).date().isoformat(),
    }
