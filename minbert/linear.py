"""The linear layer of the encoder: PyTorch's product, or on a CPU oneDNN's.

PyTorch's own float32 product calls MKL, which is the faster one on Intel's CPUs. oneDNN's has the
same error and is 1.1 times (Zen 4) to twice (Zen 5) as fast on AMD's. Without a graph, oneDNN adds
the bias and applies the activation function while the numbers are in the cache, also in bfloat16.
It is called by a private op of PyTorch; where that is missing, `F.linear` is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

# PyTorch's names for instructions of this type.
BFLOAT16 = ("amx_bf16", "avx512_bf16", "bf16")
# By name in `config.json`: the function, and oneDNN's name and algorithm for it.
ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], str, str]] = {
    "none": (lambda x: x, "none", ""),
    "gelu": (F.gelu, "gelu", "none"),
    "gelu_new": (partial(F.gelu, approximate="tanh"), "gelu", "tanh"),
    "gelu_pytorch_tanh": (partial(F.gelu, approximate="tanh"), "gelu", "tanh"),
    "relu": (F.relu, "relu", ""),
}


class Linear(nn.Module):
    """f(x W^T + b) for an activation function f: (T, in) -> (T, out). Weights are uninitialised."""

    def __init__(self, inputs: int, outputs: int, activation: str = "none") -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias, self.activation)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str = "none") -> Tensor:
    """Compute f(x W^T + b): x (T, in), weight (out, in), bias (out,) or None -> (T, out)."""
    on_cpu, autocasts = x.device.type == "cpu", torch.is_autocast_enabled("cpu")
    if on_cpu and autocasts and not torch.is_grad_enabled() and uses_onednn(torch.bfloat16):
        half = None if bias is None else bias.bfloat16()
        return onednn(x.bfloat16(), weight.bfloat16(), half, activation)
    if on_cpu and x.dtype == torch.float32 and not autocasts and uses_onednn(torch.float32):
        if not torch.is_grad_enabled():
            return onednn(x, weight, bias, activation)
        return ACTIVATIONS[activation][0](Product.apply(x, weight, bias))
    return ACTIVATIONS[activation][0](F.linear(x, weight, bias))


def shape_multiples(x: Tensor) -> tuple[int, int]:
    """Return the multiples to which, for `x` (T, H), T and attention's length are rounded up.

    oneDNN compiles its bfloat16 kernels for each shape, and packed batches rarely have the same
    shape. With rounding, few kernels serve all batches: a training step with 16 short sentences is
    1.2 times as fast.
    """
    rounds = x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and has_bfloat16()
    return (64, 8) if rounds else (1, 1)


@cache
def has_bfloat16() -> bool:
    """Return whether this CPU has bfloat16 instructions; most that are no x86 or ARM have."""
    known = torch.cpu.get_capabilities()
    other = known.get("architecture") != "x86_64" and "bf16" not in known
    return other or any(map(known.get, BFLOAT16))


@cache
def uses_onednn(dtype: torch.dtype) -> bool:
    """Return whether products are oneDNN's: where it is there, in float32 except on Intel's CPUs.

    In bfloat16 it needs a CPU that has instructions for it.
    """
    intel = "Intel" in str(torch.cpu.get_capabilities().get("cpu_name"))
    if intel if dtype == torch.float32 else not has_bfloat16():
        return False
    numbers = torch.zeros(2, 2, dtype=dtype, device="cpu")
    try:
        return torch.backends.mkldnn.is_available() and onednn(numbers, numbers) is not None
    except (AttributeError, RuntimeError):  # no op, or no kernel for it
        return False


def onednn(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none"
) -> Tensor:
    """Compute f(x W^T + b) with oneDNN; transposed views are not copied."""
    _, name, algorithm = ACTIVATIONS[activation]
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, name, [], algorithm)


class Product(torch.autograd.Function):
    """Product x W^T + b whose backward pass uses the same kernel; oneDNN's private op has none."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return onednn(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        wants_x, wants_weight, wants_bias = ctx.needs_input_grad
        return (
            onednn(grad, weight.t()) if wants_x else None,
            onednn(grad.t(), x.t()) if wants_weight else None,
            grad.sum(0) if wants_bias else None,
        )
