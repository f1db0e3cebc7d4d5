"""Kernels between the products of an int8 encoder, compiled by Numba on first use.

oneDNN computes the products. Each kernel here does in one pass over a token's row what would
otherwise be several passes over all tokens: it scales the integer sums of the product before,
applies what stands between two products, and quantises the row for the next product. The kernels
use one thread and release Python's lock.

Shapes: T tokens, S sequences, L tokens of the longest sequence, A attention heads, D width of a
head, H = A D. `sums` are integer sums (T, W) of a product. `scales` (T,) are the tokens' scales of
its inputs, and `weights` (W,) those of its output channels, so that the product is
`sums * scales[:, None] * weights + bias`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

F = np.float32
I = np.int32  # noqa: E741
MAGNITUDE = np.int32(0x7FFFFFFF)  # all bits of a float32 but its sign
HALF_RANGE = np.int32(128)
SHIFT = np.float32(0.1701)  # added to the activation, whose minimum is -0.17 (GELU) or 0 (ReLU)
GELU, TANH_GELU, RELU = 0, 1, 2
ACTIVATIONS = {  # name in `config.json`: its number
    "gelu": GELU,
    "gelu_new": TANH_GELU,
    "gelu_pytorch_tanh": TANH_GELU,
    "relu": RELU,
}

# Not "nnan" and "ninf": a NaN in a row must reach the output.
FLAGS = {"reassoc", "contract", "nsz", "arcp", "afn"}
OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "fastmath": FLAGS, "error_model": "numpy"}


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
def gelu(x):
    """Compute x Phi(x) with an absolute error below 2e-7 |x|.

    The error function is approximation 7.1.26 of Abramowitz and Stegun (1964).
    """
    a = abs(x) * F(0.70710678)
    t = F(1.0) / (F(1.0) + F(0.3275911) * a)
    p = F(1.061405429) * t + F(-1.453152027)
    p = p * t + F(1.421413741)
    p = p * t + F(-0.284496736)
    p = (p * t + F(0.254829592)) * t
    return max(x, F(0.0)) - F(0.5) * abs(x) * p * exp(-a * a)


@njit(inline="always", **OPTIONS)
def tanh_gelu(x):
    """Compute GELU's approximation by tanh: x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))."""
    u = F(1.59576912) * (x + F(0.044715) * x * x * x)
    return x / (F(1.0) + exp(-u))


@njit(inline="always", **OPTIONS)
def quantize_row(row, bits, codes):
    """Quantise a row (W,) to int8 codes, symmetrically; return its scale.

    `bits` is the same row as int32: of positive numbers, the largest has the largest bits, and the
    bits of NaN are larger than all.
    """
    most = I(0)
    for j in range(len(bits)):
        most = max(most, bits[j] & MAGNITUDE)
    largest = from_bits(most)
    inverse = F(127.0) / largest if most > 0 else F(0.0)
    for j in range(len(row)):
        codes[j] = np.int8(np.rint(row[j] * inverse))
    return largest / F(127.0)


@njit(**OPTIONS)
def quantize(states, factors, codes, scales):
    """Quantise states (T, H) times `factors` (H,) to int8 `codes` and `scales` (T,)."""
    row = np.empty(states.shape[1], np.float32)
    bits = row.view(np.int32)
    for t in range(states.shape[0]):
        for j in range(states.shape[1]):
            row[j] = states[t, j] * factors[j]
        scales[t] = quantize_row(row, bits, codes[t])


@njit(**OPTIONS)
def activate(sums, scales, weights, bias, activation, codes, new_scales):
    """Apply the activation function to a product (T, W), and quantise it.

    The activation has few negative values. It is shifted by SHIFT to be positive and has codes
    from 0 to 255, which are stored less 128.
    """
    width = sums.shape[1]
    row = np.empty(width, np.float32)
    bits = row.view(np.int32)
    for t in range(sums.shape[0]):
        scale = scales[t]
        for j in range(width):
            row[j] = F(sums[t, j]) * (scale * weights[j]) + bias[j]
        if activation == GELU:
            for j in range(width):
                row[j] = gelu(row[j]) + SHIFT
        elif activation == TANH_GELU:
            for j in range(width):
                row[j] = tanh_gelu(row[j]) + SHIFT
        else:
            for j in range(width):
                row[j] = (max(row[j], F(0.0)) if row[j] == row[j] else row[j]) + SHIFT
        most = I(0)
        for j in range(width):
            most = max(most, bits[j] & MAGNITUDE)
        largest = from_bits(most)
        inverse = F(255.0) / largest
        new_scales[t] = largest / F(255.0)
        for j in range(width):
            codes[t, j] = np.int8(I(np.rint(row[j] * inverse)) - HALF_RANGE)


@njit(**OPTIONS)
def add_and_norm(
    sums, scales, weights, bias, offsets, states, gain, shift, eps, factors, codes, new_scales
):
    """Add a product (T, H) to `states`, normalise them in place (layer norm), and quantise them.

    `offsets` (H,) are added to the integer sums, and `factors` (H,) multiply what is quantised.
    """
    width = sums.shape[1]
    row = np.empty(width, np.float32)
    bits = row.view(np.int32)
    for t in range(sums.shape[0]):
        scale = scales[t]
        total = F(0.0)
        for j in range(width):
            value = F(sums[t, j] + offsets[j]) * (scale * weights[j]) + bias[j] + states[t, j]
            row[j] = value
            total += value
        mean = total / F(width)
        variance = F(0.0)
        for j in range(width):
            variance += (row[j] - mean) * (row[j] - mean)
        inverse = F(1.0) / np.sqrt(variance / F(width) + eps)
        for j in range(width):
            value = (row[j] - mean) * inverse * gain[j] + shift[j]
            row[j] = value * factors[j]
            states[t, j] = value
        new_scales[t] = quantize_row(row, bits, codes[t])


@njit(**OPTIONS)
def to_grid(sums, scales, weights, bias, starts, lengths, grid):
    """Write a product (T, W) into the cells of the padded grid (S, L, W), with zeros elsewhere."""
    for i in range(len(lengths)):
        for j in range(grid.shape[1]):
            cell = grid[i, j]
            if j < lengths[i]:
                row, scale = sums[starts[i] + j], scales[starts[i] + j]
                for w in range(len(cell)):
                    cell[w] = F(row[w]) * (scale * weights[w]) + bias[w]
            else:
                for w in range(len(cell)):
                    cell[w] = F(0.0)


@njit(**OPTIONS)
def softmax(scores, lengths):
    """Compute the softmax over keys in place, with zeros for padding cells: scores (A, S, L, L)."""
    columns = scores.shape[3]
    for head in range(scores.shape[0]):
        for i in range(len(lengths)):
            n, grid = lengths[i], scores[head, i]
            for r in range(columns):
                row = grid[r]
                most = row[0]
                for j in range(1, n):
                    most = max(most, row[j])
                for j in range(columns):
                    row[j] -= most
            cells = grid.reshape(-1)
            for j in range(len(cells)):
                cells[j] = exp(cells[j])
            for r in range(columns):
                row = grid[r]
                total = F(0.0)
                for j in range(n):
                    total += row[j]
                share = F(1.0) / total
                for j in range(n):
                    row[j] *= share
                for j in range(n, columns):
                    row[j] = F(0.0)


@njit(**OPTIONS)
def from_grid(context, starts, lengths, codes, scales):
    """Gather the context of all heads (A, S, L, D) as tokens (T, A D), and quantise them."""
    heads, width = context.shape[0], context.shape[3]
    row = np.empty(heads * width, np.float32)
    bits = row.view(np.int32)
    for i in range(len(lengths)):
        for j in range(lengths[i]):
            for head in range(heads):
                row[head * width : (head + 1) * width] = context[head, i, j]
            token = starts[i] + j
            scales[token] = quantize_row(row, bits, codes[token])
