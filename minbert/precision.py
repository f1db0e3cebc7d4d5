"""Precision: float32, or matrix products in bfloat16 by `torch.autocast`."""

from __future__ import annotations

from typing import NamedTuple

import torch

from common.errors import SettingsError
from minbert.config import PRECISIONS
from minbert.linear import has_bfloat16


class PrecisionChoice(NamedTuple):
    """A precision, never `auto`, and why it was chosen."""

    precision: str
    reason: str

    def __str__(self) -> str:
        return f"precision: {self.precision} ({self.reason})"


def choose_precision(requested: str, device: torch.device, bilstm: bool) -> PrecisionChoice:
    """Return the requested precision; for `auto`, bf16 where the device has bfloat16, else fp32.

    A BiLSTM, which has no bf16, gets fp32. Raise SettingsError for another precision.
    """
    known = ("auto", "fp32") if bilstm else ("auto", *PRECISIONS)
    if requested not in known:
        line = f"expected one of {', '.join(known)}{' for a BiLSTM' if bilstm else ''}"
        raise SettingsError(f"precision: {line}, found {requested!r}")
    if requested != "auto":
        return PrecisionChoice(requested, "as requested")
    if bilstm:
        return PrecisionChoice("fp32", "a BiLSTM has no bf16")
    able, reason = bfloat16_support(device)
    return PrecisionChoice("bf16" if able else "fp32", reason)


def bfloat16_support(device: torch.device) -> tuple[bool, str]:
    """Return whether a device has bfloat16 instructions, and a clause that says so.

    NVIDIA's GPUs have them since Ampere (8.0); AMD's have them. Others emulate them, which is
    slower than float32.
    """
    if device.type == "cuda":
        hip = torch.version.hip is not None
        able, what = hip or torch.cuda.get_device_capability(device) >= (8, 0), "GPU"
    else:
        able, what = has_bfloat16(), "CPU"
    return able, f"this {what} has {'' if able else 'no '}bfloat16 instructions"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Autocast matrix products to bfloat16 for `bf16` only; weights stay float32.

    Converted weights are not kept: inside another autocast, even one that is not enabled, PyTorch
    would keep them after the weights have changed.
    """
    used = precision == "bf16"
    return torch.autocast(device.type, torch.bfloat16, enabled=used, cache_enabled=False)
