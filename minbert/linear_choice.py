"""Which float32 product the linear layers use on this CPU: measured once, then remembered."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from common.errors import UserError
from common.json_files import read_json, write_json
from minbert.arithmetic import LINEARS
from minbert.linear import has_onednn, linear

SHAPES = ((1024, 384, 1536), (1024, 1536, 384))  # tokens, inputs, outputs: MiniLM's feed-forward
ROUNDS = 7
MARGIN = 1.1  # less than a tenth is noise: then PyTorch's own product stays
TOLERANCE = 1e-5  # of the largest entry; both products are near 1e-6


class LinearError(UserError):
    """A linear kernel that this PyTorch does not have."""

    status = 2


@dataclass(frozen=True)
class LinearChoice:
    """The kernel's name, and why it is used."""

    kernel: str
    reason: str


def choose_linear(wanted: str = "auto") -> LinearChoice:
    """`mkl` or `onednn` as asked; for `auto` the faster one, from the user's cache or measured.

    Raises LinearError for an unknown kernel or one that this PyTorch lacks.
    """
    if wanted not in ("auto", *LINEARS):
        raise LinearError(f"--linear: expected auto, {', '.join(LINEARS)}, found {wanted!r}")
    if wanted == "onednn" and not has_onednn():
        raise LinearError("--linear onednn: expected a PyTorch that has this kernel, found none")
    if wanted != "auto":
        return LinearChoice(wanted, "as asked")
    if not has_onednn():
        return LinearChoice("mkl", "this PyTorch lacks onednn")
    known = remembered()
    if (found := known.get(this_machine())) is not None:
        return found
    choice = probe()
    remember(known | {this_machine(): choice})
    return choice


def probe() -> LinearChoice:
    """Measure a linear layer, forward and backward, with both kernels in turns."""
    generator = torch.Generator().manual_seed(0)
    cases = [layer_inputs(generator, *shape) for shape in SHAPES]
    if not all(agrees(case) for case in cases):
        return LinearChoice("mkl", "the results of onednn differ")
    fastest = dict.fromkeys(LINEARS, float("inf"))
    for _ in range(ROUNDS):
        for kernel in LINEARS:
            begin = time.perf_counter()
            for case in cases:
                forward_backward(kernel, *case)
            fastest[kernel] = min(fastest[kernel], time.perf_counter() - begin)
    speedup = fastest["mkl"] / fastest["onednn"]
    return LinearChoice(
        "onednn" if speedup >= MARGIN else "mkl",
        f"measured: onednn has {speedup:.2f} times the speed of mkl",
    )


def layer_inputs(
    generator: torch.Generator, tokens: int, inputs: int, outputs: int
) -> tuple[Tensor, ...]:
    """x, weight, bias, and the gradient of the output."""
    shapes = ((tokens, inputs), (outputs, inputs), (outputs,), (tokens, outputs))
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def forward_backward(kernel: str, *case: Tensor) -> list[Tensor]:
    """The output and the gradients of x, weight and bias."""
    x, weight, bias = (tensor.detach().requires_grad_() for tensor in case[:3])
    with torch.enable_grad():
        output = linear(x, weight, bias, kernel)
        return [output.detach(), *torch.autograd.grad(output, (x, weight, bias), case[3])]


def agrees(case: tuple[Tensor, ...]) -> bool:
    """Whether oneDNN's results are those of float64, up to float32's rounding."""
    exact = forward_backward("mkl", *(tensor.double() for tensor in case))
    found = forward_backward("onednn", *case)
    return all(
        (a.double() - b).abs().max() <= TOLERANCE * b.abs().max()
        for a, b in zip(found, exact, strict=True)
    )


def this_machine() -> str:
    """What the faster kernel depends on."""
    cpu = torch.cpu.get_capabilities().get("cpu_name") or platform.processor()
    return f"{cpu}, torch {torch.__version__}, {torch.get_num_threads()} threads"


def cache_file() -> Path:
    """Under `$XDG_CACHE_HOME`, which counts only if it is absolute, else under `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    home = home if os.path.isabs(home) else os.path.expanduser("~/.cache")
    return Path(home) / "minbert" / "linear.json"


def remembered() -> dict[str, LinearChoice]:
    """Choices of earlier processes; none where the file is missing or is not ours."""
    try:
        found = {machine: LinearChoice(**c) for machine, c in read_json(cache_file()).items()}
        return {machine: choice for machine, choice in found.items() if choice.kernel in LINEARS}
    except (UserError, OSError, TypeError, RecursionError):
        return {}  # it will be measured again and written anew


def remember(choices: dict[str, LinearChoice]) -> None:
    content = {machine: asdict(choice) for machine, choice in choices.items()}
    try:
        cache_file().parent.mkdir(parents=True, exist_ok=True)
        write_json(cache_file(), content)
    except OSError:
        return  # a home that cannot be written: the next process measures again
