"""The linear layer of the encoder, and its kernels on a CPU.

`mkl` is PyTorch's own `F.linear`. `onednn` calls oneDNN's kernel through a private PyTorch op.
`minbert/kernel_choice.py` chooses the one for float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from common.environment import bfloat16_of


class Linear(nn.Module):
    """Linear layer x W^T + b with uninitialised weights: (T, in) -> (T, out)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.kernel = "mkl"

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias, self.kernel)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, kernel: str) -> Tensor:
    """Compute x W^T + b: x (T, in), weight (out, in), bias (out,) or None -> (T, out).

    `kernel` is the float32 kernel on a CPU. On a CPU without bfloat16 instructions, bfloat16 layers
    use float32 products of the rounded numbers, which are three times faster than PyTorch's.
    """
    if x.device.type != "cpu":
        return F.linear(x, weight, bias)
    if is_bfloat16(x):
        return F.linear(x, weight, bias) if has_bfloat16() else rounded(x, weight, bias)
    if uses_onednn(x, kernel) and not torch.compiler.is_compiling():
        return Product.apply(x, weight, bias, onednn)
    return F.linear(x, weight, bias)


def shape_multiples(x: Tensor) -> tuple[int, int]:
    """Return the multiples to which, for `x` (T, H), T and attention's length are rounded up.

    oneDNN compiles its bfloat16 kernels for each shape, and packed batches rarely have the same
    shape. With rounding, few kernels serve all batches: a training step with 16 short sentences is
    1.2 times as fast.
    """
    compiled = x.device.type == "cpu" and is_bfloat16(x) and has_bfloat16()
    return (64, 8) if compiled else (1, 1)


def is_bfloat16(x: Tensor) -> bool:
    """Return whether products with `x`, a tensor on the CPU, use bfloat16."""
    half = torch.bfloat16
    autocast = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == half
    return x.dtype == half or autocast


@cache
def has_onednn() -> bool:
    """Return whether this PyTorch has oneDNN and the private op for its float32 kernel."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def reports_bfloat16(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a CPU with these capabilities, as PyTorch names them, has bfloat16."""
    return bfloat16_of(capabilities) != "emulated"


BFLOAT16 = reports_bfloat16(torch.cpu.get_capabilities())


def has_bfloat16() -> bool:
    """Return whether this CPU has bfloat16 instructions."""
    return BFLOAT16


def onednn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: tuple[str, str] = ("none", ""),
) -> Tensor:
    """Compute x W^T + b with oneDNN, and a function of it; transposed views are not copied."""
    name, algorithm = activation
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, name, [], algorithm)


def product(x: Tensor, weight: Tensor, bias: Tensor | None, kernel: str) -> Tensor:
    """Compute x W^T + b on a CPU, without a graph; all tensors have the same type.

    `F.linear` in bfloat16 calls oneDNN, too, but writes the bias in a pass of its own.
    """
    if has_pointwise(x, kernel):
        return onednn(x, weight, bias)
    return F.linear(x, weight, bias)


def has_pointwise(x: Tensor, kernel: str) -> bool:
    """Return whether `product` calls oneDNN by PyTorch's private op."""
    return uses_onednn(x, kernel) or (x.dtype == torch.bfloat16 and has_onednn_bfloat16())


@cache
def has_onednn_bfloat16() -> bool:
    """Return whether the private op computes in bfloat16 here.

    Besides the CPU, it depends on the instruction sets that oneDNN may use (ONEDNN_MAX_CPU_ISA).
    """
    numbers = torch.zeros(2, 2, dtype=torch.bfloat16, device="cpu")
    try:
        return has_onednn() and onednn(numbers, numbers) is not None
    except RuntimeError:  # no kernel
        return False


ACTIVATIONS = {  # name in `config.json`: those of oneDNN
    "gelu": ("gelu", "none"),
    "gelu_new": ("gelu", "tanh"),
    "gelu_pytorch_tanh": ("gelu", "tanh"),
    "relu": ("relu", ""),
}


def activated_product(
    x: Tensor, weight: Tensor, bias: Tensor, kernel: str, activation: str
) -> Tensor | None:
    """Compute activation(x W^T + b) like `product`; None if its kernel has no activations."""
    if has_pointwise(x, kernel):
        return onednn(x, weight, bias, ACTIVATIONS[activation])
    return None


def input_gradient(
    grad: Tensor, weight: Tensor, kernel: str, addend: Tensor | None = None
) -> Tensor:
    """Compute grad W + addend, the gradient of x (T, in) from that of the product (T, out)."""
    if uses_onednn(grad, kernel):
        found = onednn(grad, weight.t())
        return found if addend is None else found.add_(addend)
    return grad @ weight if addend is None else torch.addmm(addend, grad, weight)


def weight_gradient(grad: Tensor, x: Tensor, kernel: str) -> Tensor:
    """Compute grad^T x, the gradient of the weight (out, in)."""
    return onednn(grad.t(), x.t()) if uses_onednn(grad, kernel) else grad.t() @ x


def uses_onednn(x: Tensor, kernel: str) -> bool:
    """Return whether products with `x` call oneDNN's float32 kernel by PyTorch's private op."""
    return kernel == "onednn" and x.dtype == torch.float32 and has_onednn()


class Product(torch.autograd.Function):
    """Product x W^T + b whose backward pass uses the same kernel; oneDNN's private op has none."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, kernel: Callable[..., Tensor]
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.kernel = kernel
        return kernel(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        wants_x, wants_weight, wants_bias, _ = ctx.needs_input_grad
        return (
            ctx.kernel(grad, weight.t()) if wants_x else None,
            ctx.kernel(grad.t(), x.t()) if wants_weight else None,
            grad.float().sum(0).to(grad.dtype) if wants_bias else None,
            None,
        )


def rounded(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute the bfloat16 linear layer with products in float32.

    The product of two bfloat16 numbers is exact in float32, and bfloat16 instructions also sum in
    float32. The results differ only by the order of the sum.
    """
    half = torch.bfloat16
    with torch.autocast("cpu", enabled=False):
        bias = None if bias is None else bias.to(half)
        return Product.apply(x.to(half), weight.to(half), bias, widened)


def widened(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x W^T + b in float32 and round it to the type of `x`."""
    return F.linear(x.float(), weight.float(), None if bias is None else bias.float()).to(x.dtype)
