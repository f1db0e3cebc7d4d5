"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime


def environment() -> dict[str, str | int]:
    """Machine class, versions and date, for every file that holds measured figures."""
    import torch

    return {
        "cpu": str(torch.cpu.get_capabilities().get("cpu_name", platform.processor())),
        "cores": os.cpu_count() or 1,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": sys.platform,
        "date": datetime.now(UTC).date().isoformat(),
    }
