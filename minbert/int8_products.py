"""Whether this CPU multiplies int8 numbers exactly, and faster than float32."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

SPEEDUP = 1.2  # minimum over the float32 product, to use int8
REPETITIONS = 5  # of which the fastest counts
CASE = (1024, 384, 1536)  # tokens, inputs, outputs of the product that is measured


@cache
def exact_products() -> bool:
    """Return whether PyTorch's int8 products are exact on this CPU.

    On x86 without instructions for them (VNNI or AMX) their sums saturate.
    """
    if not hasattr(torch, "_int_mm"):
        return False
    codes, weight = int8_case()
    try:
        found = torch._int_mm(codes, weight)
    except RuntimeError:  # no kernel for this CPU
        return False
    # Sums of 384 products up to 128^2 are below 2^24: they are exact in float32, too.
    return torch.equal(found, (codes.float() @ weight.float()).to(torch.int32))


def int8_case() -> tuple[Tensor, Tensor]:
    """Draw codes and weights of the shapes CASE, with extreme values in the first ones."""
    generator = torch.Generator().manual_seed(0)
    tokens, inputs, outputs = CASE
    codes, weight = (
        torch.randint(-128, 128, shape, dtype=torch.int8, generator=generator)
        for shape in ((tokens, inputs), (outputs, inputs))
    )
    codes[0], codes[1], weight[0], weight[1] = 127, -128, 127, -128
    return codes, weight.t()


@cache
def has_int8() -> bool:
    """Return whether int8 products are exact and faster than float32, by measurement."""
    if not exact_products():
        return False
    codes, weight = int8_case()
    floats = codes.float(), weight.float()
    integer = fastest(lambda: torch._int_mm(codes, weight))
    return SPEEDUP * integer <= fastest(lambda: torch.mm(*floats))


def fastest(run: Callable[[], object]) -> float:
    """Return the least seconds of a few calls."""
    seconds = []
    for _ in range(REPETITIONS):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)
