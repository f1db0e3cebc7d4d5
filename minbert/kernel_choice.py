"""The float32 kernel of linear layers on a CPU: the requested one, or the faster of two.

On AMD CPUs `onednn` is up to twice as fast as `mkl` with the same error; on Intel CPUs both are
about equally fast. Therefore both are measured once, and the choice is kept in the user's cache.
"""

from __future__ import annotations

import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from common.errors import UserError
from common.json_files import read_json, write_json
from minbert.config import LINEARS
from minbert.device import HardwareError
from minbert.linear import has_onednn, linear
from minbert.user_cache import cache_folder

SHAPES = ((512, 384, 1536), (512, 1536, 384))  # tokens, inputs, outputs: MiniLM's feed-forward
ROUNDS = 15
WINS = 12  # or more: a probability of 1.8 % if both kernels are equally fast
TOLERANCE = 1e-5  # relative to the largest entry; both kernels are near 1e-6


@dataclass(frozen=True)
class LinearChoice:
    """The name of the chosen kernel and the reason for the choice."""

    kernel: str
    reason: str


def choose_linear(kernel: str = "auto") -> LinearChoice:
    """Return the requested kernel; for `auto` the faster one, from the user's cache or measured.

    Raise HardwareError for an unknown kernel or one that this PyTorch lacks.
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
