"""Interleaved measurements of several sides, their medians and ratios."""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from minbert.config import LINEARS
from minbert.kernel_choice import choose_linear
from minbert.linear import has_onednn, input_gradient, linear, product, weight_gradient
from minbert.threads import in_threads

SHAPES = ((384, 1152), (384, 384), (384, 1536), (1536, 384))  # inputs, outputs of MiniLM's layers
LAYERS = 6  # of MiniLM
GEMM_TOKENS = 2048


def in_rounds(sides: Mapping[str, Callable[[], float]], repetitions: int) -> dict[str, list[float]]:
    """Return each side's results of `repetitions` interleaved rounds, after a warm-up round.

    A machine's speed drifts; interleaving spreads the drift over all sides. The order is random in
    each round, because the caches and the allocator after one side affect the next.
    """
    found: dict[str, list[float]] = {name: [] for name in sides}
    generator = random.Random(0)
    for repetition in range(repetitions + 1):
        for name in generator.sample(list(sides), len(sides)):
            value = sides[name]()
            if repetition:
                found[name].append(value)
    return found


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def seconds_table(found: Mapping[str, list[float]], peer: str) -> dict[str, Any]:
    """Return the spread of each side's seconds, and its median's speed-up over `peer`."""
    reference = statistics.median(found[peer])
    return {name: spread(values) | {"ratio": reference / statistics.median(values)}
            for name, values in found.items()}  # fmt: skip


def rate_table(found: Mapping[str, list[float]], amount: float, peer: str) -> dict[str, Any]:
    """Return the same for rates: `amount` of work over each side's seconds."""
    rates = {name: [amount / value for value in values] for name, values in found.items()}
    reference = statistics.median(rates[peer])
    return {name: spread(values) | {"ratio": statistics.median(values) / reference}
            for name, values in rates.items()}  # fmt: skip


def spread(values: list[float]) -> dict[str, float]:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def make_result(args: argparse.Namespace, unit: str, groups: dict[str, Any]) -> dict[str, Any]:
    """Return a benchmark's result: its tables, and the data and kernel of the measurement."""
    linear = choose_linear()
    return {
        "unit": unit,
        "repetitions": args.repetitions,
        "data": Path(args.data).name,
        "linear": f"{linear.kernel} ({linear.reason})",
        "groups": groups,
    }


def gemm_seconds(
    tokens: float, layers: int, precision: str, device: torch.device, training: bool = False
) -> float:
    """Return the seconds of only the linear layers' products, with this machine's fastest kernels.

    This is the limit of any encoder of MiniLM's width on `tokens` tokens; with `training`, of a
    forward and a backward pass. On a CPU it is the faster of products that all cores share and
    products that each core computes for itself.
    """
    seconds = products_seconds(precision, device, training)
    if device.type == "cpu":
        cores = torch.get_num_threads()
        alone = in_threads(
            lambda _: products_seconds(precision, device, training), range(cores), cores
        )
        seconds = min(seconds, max(alone) / cores)
    return seconds * layers * tokens / GEMM_TOKENS


def limit_name(precision: str) -> str:
    """Return the name of the side that times only the products in a precision."""
    return f"limit of {precision} products"


def share_of_limit(
    sides: Mapping[str, Mapping[str, float]], name: str, precisions: Sequence[str]
) -> float | None:
    """Return a side's rate as a share of the limit of the precision in its name, else of fp32.

    None if this limit is not among the sides.
    """
    precision = next((one for one in precisions if one in name), "fp32")
    bound = sides.get(limit_name(precision))
    return sides[name]["median"] / bound["median"] if bound else None


def products_seconds(precision: str, device: torch.device, training: bool = False) -> float:
    """Return the seconds of a layer's products on GEMM_TOKENS tokens."""
    total = 0.0
    with torch.inference_mode():
        for inputs, outputs in SHAPES:
            shapes = (GEMM_TOKENS, inputs), (outputs, inputs)
            products = [kernels(precision, device, *shapes)]
            if training:
                products += gradient_kernels(precision, device, *shapes)
            total += sum(min(timed_on(one, device) for one in several) for several in products)
    return total


def kernels(
    precision: str, device: torch.device, x_shape: tuple[int, int], weight_shape: tuple[int, int]
) -> list[Callable[[], object]]:
    """Return the products in a precision, one for each kernel."""
    if precision == "int8":
        x, weight = (
            torch.randint(-127, 128, shape, dtype=torch.int8) for shape in (x_shape, weight_shape)
        )
        sums = torch.empty(x_shape[0], weight_shape[0], dtype=torch.int32)
        return [partial(torch._int_mm, x, weight.t(), out=sums)]
    x, weight, bias = draw(precision, device, x_shape, weight_shape, (weight_shape[0],))
    names = kernel_names(device)
    found: list[Callable[[], object]] = [
        partial(F.linear, x, weight, bias),
        *(partial(linear, x, weight, bias, name) for name in names),
    ]
    if device.type == "cpu":
        found += [partial(product, x, weight, bias, name) for name in names]
    return found


def gradient_kernels(
    precision: str, device: torch.device, x_shape: tuple[int, int], weight_shape: tuple[int, int]
) -> list[list[Callable[[], object]]]:
    """Return the products of both gradients in a precision: of the inputs, and of the weight."""
    grad_shape = x_shape[0], weight_shape[0]
    x, weight, grad = draw(precision, device, x_shape, weight_shape, grad_shape)
    names = kernel_names(device)
    return [
        [partial(input_gradient, grad, weight, name) for name in names],
        [partial(weight_gradient, grad, x, name) for name in names],
    ]


def draw(precision: str, device: torch.device, *shapes: tuple[int, ...]) -> list[torch.Tensor]:
    """Return normal random numbers of these shapes in the type of a precision."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    return [torch.randn(shape, dtype=dtype, device=device) for shape in shapes]


def kernel_names(device: torch.device) -> tuple[str, ...]:
    """Return the names of the kernels that this PyTorch has for a device."""
    return LINEARS if has_onednn() and device.type == "cpu" else LINEARS[:1]


def timed_on(work: Callable[[], object], device: torch.device) -> float:
    """Return the fastest of five calls, with the device synchronised before and after."""
    work()
    values = []
    for _ in range(5):
        synchronize(device)
        begin = time.perf_counter()
        work()
        synchronize(device)
        values.append(time.perf_counter() - begin)
    return min(values)


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
