"""Names of precisions, kernels and devices. This module does not import torch."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta

Precision = Literal["fp32", "bf16"]
Kernel = Literal["mkl", "onednn"]  # for fp32 linear layers on a CPU
KernelChoice = Literal["auto", "mkl", "onednn"]
DEVICE = "auto, cpu, cuda or cuda:N"
Device = Annotated[str, Meta(pattern=r"^(auto|cpu|cuda(:[0-9]{1,3})?)$", description=DEVICE)]
PRECISIONS: tuple[str, ...] = get_args(Precision)
LINEARS: tuple[str, ...] = get_args(Kernel)
