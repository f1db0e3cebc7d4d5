"""Functions of numbers for kernels that Numba compiles: bits, exp, GELU, bfloat16.

Numba compiles loops over them to vector instructions, which it cannot do with functions of the C
library. A tensor of bfloat16 numbers is an int16 array for Numba, which has no such type.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic, overload

from minbert.user_cache import cache_folder

F = np.float32
I = np.int32  # noqa: E741
MAGNITUDE = np.int32(0x7FFFFFFF)  # all bits of a float32 but its sign
GELU, TANH_GELU, RELU = 0, 1, 2
ACTIVATIONS = {  # name in `config.json`: its number
    "gelu": GELU,
    "gelu_new": TANH_GELU,
    "gelu_pytorch_tanh": TANH_GELU,
    "relu": RELU,
}

# Not "nnan" and "ninf": a NaN in a row must reach the output.
FLAGS = {"reassoc", "contract", "nsz", "arcp", "afn"}
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FLAGS, "error_model": "numpy"}
SOURCES = ("vector_math.py", "attention_kernel.py", "layer_kernels.py", "int8_kernels.py")


CACHE_SETTING = Lock()  # threads may load modules with kernels at the same time


def compile_kernel(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a kernel on first use, and keep it on disk as long as the sources are the same.

    Numba by itself would not notice a change of a function that the kernel calls from another file.
    Without a folder to write to, each process compiles again.
    """
    folder = folder_of_kernels()
    with CACHE_SETTING:
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder or "")
        try:
            compiled: Callable[..., None] = njit(cache=folder is not None, **OPTIONS)(function)
            return compiled
        finally:
            config.CACHE_DIR = before


@cache
def folder_of_kernels() -> Path | None:
    """Return a folder that is named after the sources: beside them, or in the user's cache."""
    here = Path(__file__).parent
    digest = sha256(b"".join((here / name).read_bytes() for name in SOURCES)).hexdigest()[:16]
    for place in (here / "__pycache__", cache_folder()):
        folder = place / f"kernels-{digest}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None


@intrinsic
def from_bits(context: Any, bits: Any) -> Any:
    """Return the float32 with the bits of an int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@njit(inline="always", **OPTIONS)
def exp(x):
    """Compute e^x with a relative error below 2e-7, for x clamped to -87 to 88.

    2^n e^r with |r| <= log(2) / 2 and the polynomial of Cephes' expf (Moshier, 1992). Unlike the
    function of the C library, loops over it use vector instructions.
    """
    x = min(max(x, F(-87.0)), F(88.0))
    n = np.rint(x * F(1.44269504))
    r = x - n * F(0.693359375)
    r = r - n * F(-2.12194440e-4)
    p = F(1.9875691500e-4)
    p = p * r + F(1.3981999507e-3)
    p = p * r + F(8.3334519073e-3)
    p = p * r + F(4.1665795894e-2)
    p = p * r + F(1.6666665459e-1)
    p = p * r + F(5.0000001201e-1)
    p = p * r * r + r + F(1.0)
    return p * from_bits((I(n) + I(127)) << I(23))


@njit(inline="always", **OPTIONS)
def erfc_factor(a):
    """Compute erfc(a) e^(a^2) for a >= 0: approximation 7.1.26 of Abramowitz and Stegun (1964)."""
    t = F(1.0) / (F(1.0) + F(0.3275911) * a)
    p = F(1.061405429) * t + F(-1.453152027)
    p = p * t + F(1.421413741)
    p = p * t + F(-0.284496736)
    return (p * t + F(0.254829592)) * t


@njit(inline="always", **OPTIONS)
def gelu(x):
    """Compute x Phi(x) with an absolute error below 2e-7 |x|."""
    a = abs(x) * F(0.70710678)
    return max(x, F(0.0)) - F(0.5) * abs(x) * erfc_factor(a) * exp(-a * a)


@njit(inline="always", **OPTIONS)
def tanh_gelu(x):
    """Compute GELU's approximation by tanh: x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))."""
    u = F(1.59576912) * (x + F(0.044715) * x * x * x)
    return x / (F(1.0) + exp(-u))


@njit(inline="always", **OPTIONS)
def gelu_slope(x):
    """Compute the derivative of GELU, Phi(x) + x phi(x), with an absolute error below 2e-7."""
    a = abs(x) * F(0.70710678)
    e = exp(-a * a)
    half = F(0.5) * erfc_factor(a) * e  # 1 - Phi(|x|)
    return (half if x < F(0.0) else F(1.0) - half) + x * e * F(0.39894228)


@njit(inline="always", **OPTIONS)
def tanh_gelu_slope(x):
    """Compute the derivative of `tanh_gelu`."""
    u = F(1.59576912) * (x + F(0.044715) * x * x * x)
    s = F(1.0) / (F(1.0) + exp(-u))
    return s + x * s * (F(1.0) - s) * F(1.59576912) * (F(1.0) + F(0.134145) * x * x)


@intrinsic
def to_bits(context: Any, number: Any) -> Any:
    """Return the bits of a float32 as an int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


def load(number):
    """Return a number of an array as float32: float32 itself, or bfloat16 from its int16 bits."""
    raise TypeError("expected a call from compiled code")


@overload(load, jit_options={"fastmath": FLAGS})
def compiled_load(number):
    if number == types.int16:
        return lambda number: from_bits(I(number) << I(16))
    return lambda number: number


@njit(**OPTIONS)
def to_bfloat16(number):
    """Return the int16 bits of the nearest bfloat16 number, the even one of two; NaN stays NaN."""
    bits = to_bits(number)
    nearest = (bits + I(0x7FFF) + ((bits >> I(16)) & I(1))) >> I(16)
    invalid = (bits >> I(16)) | I(0x40)
    return np.int16(invalid if (bits & MAGNITUDE) > I(0x7F800000) else nearest)


def rounded_to(array, number):
    """Return a float32 in the type of an array: float32 itself, or the int16 bits of bfloat16."""
    raise TypeError("expected a call from compiled code")


@overload(rounded_to, jit_options={"fastmath": FLAGS})
def compiled_rounded_to(array, number):
    if array.dtype == types.int16:
        return lambda array, number: to_bfloat16(number)
    return lambda array, number: number
