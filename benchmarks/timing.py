"""Interleaved measurements of several sides, their figures, and the limit by matrix products."""

import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F

from minbert.linear import linear
from minbert.threads import in_threads

SHAPES = ((384, 1152), (384, 384), (384, 1536), (1536, 384))  # inputs, outputs of MiniLM's layers
GEMM_TOKENS = 2048
CPU = torch.device("cpu")
Figures = dict[str, dict[str, float]]


def in_rounds(sides: Mapping[str, Callable[[], float]], repetitions: int) -> dict[str, list[float]]:
    """Return each side's results of rounds, in random order, after a round of warm-up."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    generator = random.Random(0)
    for _ in range(repetitions + 1):
        for name in generator.sample(list(sides), len(sides)):
            found[name].append(sides[name]())
    return {name: values[1:] for name, values in found.items()}


def timed(work: Callable[[], object], device: torch.device = CPU) -> float:
    """Return the seconds that `work` takes, until a GPU has finished it."""
    wait = torch.get_device_module(device).synchronize
    wait()
    begin = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - begin


def figures(seconds: Mapping[str, list[float]], peer: str, amount: float | None = None) -> Figures:
    """Return each side's speed-up over the peer, and spread, of rates if `amount` is given."""
    sides = {}
    for name, values in seconds.items():
        shown = values if amount is None else [amount / value for value in values]
        spread = {"min": min(shown), "median": median(shown), "max": max(shown)}
        sides[name] = spread | {"ratio": median(seconds[peer]) / median(values)}
    return sides


def gemm_seconds(tokens: int, precision: str, device: torch.device) -> float:
    """Return the seconds of the linear layers' products; cores share them or compute their own."""
    seconds = layer_seconds(precision, device)
    if device.type == "cpu":
        cores = torch.get_num_threads()
        alone = in_threads(lambda _: layer_seconds(precision, device), range(cores), cores)
        seconds = min(seconds, max(alone) / cores)
    return 6 * seconds * tokens / GEMM_TOKENS  # MiniLM has six layers


@torch.inference_mode()
def layer_seconds(precision: str, device: torch.device) -> float:
    """Return the seconds of a layer's products, each the fastest of PyTorch's and our kernel."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    seconds = 0.0
    for inputs, outputs in SHAPES:
        shapes = ((GEMM_TOKENS, inputs), (outputs, inputs), (outputs,))
        x, weight, bias = (torch.randn(shape, dtype=dtype, device=device) for shape in shapes)
        calls = [partial(product, x, weight, bias) for product in (F.linear, linear)]
        seconds += min(timed(call, device) for call in calls for _ in range(6))
    return seconds
