"""The linear layer of the encoder, its kernels on a CPU, and the choice of the device.

`mkl` is PyTorch's own `F.linear`. `onednn` calls oneDNN's float32 kernel through a private PyTorch
op. On AMD CPUs it is twice as fast with the same error; on Intel CPUs both are about equally fast.
Therefore `choose_linear` measures both once and caches the faster one.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from common.errors import UserError
from common.json_files import read_json, write_json
from minbert.config import LINEARS
from minbert.user_cache import cache_folder


class Linear(nn.Module):
    """Linear layer x W^T + b with uninitialised weights: (T, in) -> (T, out)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.kernel = "mkl"

    def forward(self, x: Tensor, addition: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        output = linear(x, self.weight, self.bias, self.kernel)
        return output if addition is None else output + addition(x)


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
    """Return whether a CPU with these capabilities, as PyTorch names them, has bfloat16.

    ARM CPUs report it as "bf16". PyTorch has no names for other CPUs; most of them have it.
    """
    if capabilities["architecture"] == "x86_64":
        return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16"))
    return bool(capabilities.get("bf16", True))


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
    return uses_onednn(x, kernel) or (x.dtype == torch.bfloat16 and has_onednn())


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


SHAPES = ((512, 384, 1536), (512, 1536, 384))  # tokens, inputs, outputs: MiniLM's feed-forward
ROUNDS = 15
WINS = 12  # or more: a probability of 1.8 % if both kernels are equally fast
TOLERANCE = 1e-5  # relative to the largest entry; both kernels are near 1e-6


class HardwareError(UserError):
    """A kernel or a device that is unknown or that this PyTorch does not have."""

    status = 2


@dataclass(frozen=True)
class LinearChoice:
    """The name of the chosen kernel and the reason for the choice."""

    kernel: str
    reason: str


def choose_linear(kernel: str = "auto") -> LinearChoice:
    """Return the requested kernel; for `auto` the faster one, from the user's cache or measured.

    Raises HardwareError for an unknown kernel or one that this PyTorch lacks.
    """
    if kernel not in ("auto", *LINEARS):
        raise HardwareError(f"--linear: expected auto, {', '.join(LINEARS)}, found {kernel!r}")
    if kernel == "onednn" and not has_onednn():
        raise HardwareError("--linear onednn: expected a PyTorch that has this kernel, found none")
    if kernel != "auto":
        return LinearChoice(kernel, "as requested")
    if not has_onednn():
        return LinearChoice("mkl", "this PyTorch lacks onednn")
    cache, machine = read_cache(), this_machine()
    if machine not in cache:
        cache[machine] = benchmark_kernels()
        write_cache(cache)
    return cache[machine]


def benchmark_kernels() -> LinearChoice:
    """Measure a linear layer's forward and backward passes with both kernels alternately."""
    cases = [layer_inputs(*shape) for shape in SHAPES]
    if not all(agrees(case) for case in cases):
        return LinearChoice("mkl", "the results of onednn differ")
    seconds: dict[str, list[float]] = {kernel: [] for kernel in LINEARS}
    for _ in range(ROUNDS):
        for kernel in LINEARS:
            begin = time.perf_counter()
            for case in cases:
                forward_backward(kernel, *case)
            seconds[kernel].append(time.perf_counter() - begin)
    wins = sum(o < m for o, m in zip(seconds["onednn"], seconds["mkl"], strict=True))
    speedup = median(seconds["mkl"]) / median(seconds["onednn"])
    return LinearChoice(
        "onednn" if wins >= WINS else "mkl",
        f"measured: onednn has {speedup:.2f} times the speed of mkl and is faster in {wins} of "
        f"{ROUNDS} rounds",
    )


def layer_inputs(tokens: int, inputs: int, outputs: int) -> tuple[Tensor, ...]:
    """Draw x, weight, bias, and the gradient of the output, always the same ones."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((tokens, inputs), (outputs, inputs), (outputs,), (tokens, outputs))
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def forward_backward(kernel: str, *case: Tensor) -> list[Tensor]:
    """Return the output and the gradients of x, weight and bias."""
    x, weight, bias = (tensor.detach().requires_grad_() for tensor in case[:3])
    with torch.enable_grad():
        output = linear(x, weight, bias, kernel)
        return [output.detach(), *torch.autograd.grad(output, (x, weight, bias), case[3])]


def agrees(case: tuple[Tensor, ...]) -> bool:
    """Return whether oneDNN's results equal those of float64, up to float32's rounding."""
    exact = forward_backward("mkl", *(tensor.double() for tensor in case))
    found = forward_backward("onednn", *case)
    return all(
        (a.double() - b).abs().max() <= TOLERANCE * b.abs().max()
        for a, b in zip(found, exact, strict=True)
    )


def this_machine() -> str:
    """Return a key for the cache: CPU, PyTorch version, number of threads, and rule of choice."""
    cpu = torch.cpu.get_capabilities().get("cpu_name") or platform.processor()
    return f"{cpu}, torch {torch.__version__}, {torch.get_num_threads()} threads, {ROUNDS} rounds"


def cache_file() -> Path:
    """Return the path of the file of measured choices."""
    return cache_folder() / "linear.json"


def read_cache() -> dict[str, LinearChoice]:
    """Return the choices of earlier processes; empty if the file is missing or invalid."""
    try:
        found = {machine: LinearChoice(**c) for machine, c in read_json(cache_file()).items()}
        return {machine: choice for machine, choice in found.items() if choice.kernel in LINEARS}
    except (UserError, OSError, TypeError, RecursionError):
        return {}  # the kernels are measured again and the file is rewritten


def write_cache(choices: dict[str, LinearChoice]) -> None:
    content = {machine: asdict(choice) for machine, choice in choices.items()}
    try:
        cache_file().parent.mkdir(parents=True, exist_ok=True)
        write_json(cache_file(), content)
    except OSError:
        return  # the cache is not writable: the next process measures again


def choose_device(name: str) -> torch.device:
    """Return the named device, for `auto` a GPU if available; raise HardwareError if none."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    known = ["auto", "cpu", *(["cuda", *gpus] if gpus else [])]
    if name not in known:
        raise HardwareError(f"--device: expected {', '.join(known)}, found {name!r}")
    return torch.device(name)


def warn_if_slow(precision: str, device: torch.device) -> None:
    """Print a note if bfloat16 is requested but not faster."""
    if precision == "bf16" and device.type == "cpu" and not has_bfloat16():
        print(
            "note: this CPU has no bfloat16 instructions; bf16 is computed with rounded fp32 "
            "products here and is no faster than --precision fp32",
            flush=True,
        )
