"""Interleaved measurements of several sides, their medians and ratios."""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from minbert.linear import linear
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
    """Return a benchmark's result: its tables, and the data of the measurement."""
    return {
        "unit": unit,
        "repetitions": args.repetitions,
        "data": Path(args.data).name,
        "groups": groups,
    }


def gemm_seconds(tokens: float, precision: str, device: torch.device) -> float:
    """Return the seconds of only the linear layers' products, with this machine's fastest kernels.

    This is the limit of any encoder of MiniLM's size on `tokens` tokens. On a CPU it is the faster
    of products that all cores share and products that each core computes for itself.
    """
    seconds = products_seconds(precision, device)
    if device.type == "cpu":
        cores = torch.get_num_threads()
        alone = in_threads(lambda _: products_seconds(precision, device), range(cores), cores)
        seconds = min(seconds, max(alone) / cores)
    return seconds * LAYERS * tokens / GEMM_TOKENS


def products_seconds(precision: str, device: torch.device) -> float:
    """Return the seconds of a layer's products on GEMM_TOKENS tokens."""
    with torch.inference_mode():
        return sum(
            min(timed_on(one, device) for one in kernels(precision, device, *shape))
            for shape in SHAPES
        )


def kernels(
    precision: str, device: torch.device, inputs: int, outputs: int
) -> list[Callable[[], object]]:
    """Return a linear layer's product, by PyTorch's kernel and by ours."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    shapes = ((GEMM_TOKENS, inputs), (outputs, inputs), (outputs,))
    x, weight, bias = (torch.randn(shape, dtype=dtype, device=device) for shape in shapes)
    return [partial(one, x, weight, bias) for one in (F.linear, linear)]


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
