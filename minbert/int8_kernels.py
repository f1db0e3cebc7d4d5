"""Kernels between the products of an int8 encoder, compiled by Numba on first use.

oneDNN computes the products. Each kernel here does in one pass over a token's row what would
otherwise be several passes over all tokens: it scales the integer sums of the product before,
applies what stands between two products, and quantises the row for the next product. The kernels
use one thread and release Python's lock.

Shapes: T tokens, H hidden width, W width of a product. `sums` are integer sums (T, W) of a
product. `scales` (T,) are the tokens' scales of its inputs, and `weights` (W,) those of its output
channels, so that the product is `sums * scales[:, None] * weights + bias`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from minbert.vector_math import (
    GELU,
    MAGNITUDE,
    OPTIONS,
    TANH_GELU,
    F,
    I,
    compile_kernel,
    from_bits,
    gelu,
    tanh_gelu,
)

HALF_RANGE = np.int32(128)
SHIFT = np.float32(0.1701)  # added to the activation, whose minimum is -0.17 (GELU) or 0 (ReLU)


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


@compile_kernel
def quantize(states, factors, codes, scales):
    """Quantise states (T, H) times `factors` (H,) to int8 `codes` and `scales` (T,)."""
    row = np.empty(states.shape[1], np.float32)
    bits = row.view(np.int32)
    for t in range(states.shape[0]):
        for j in range(states.shape[1]):
            row[j] = states[t, j] * factors[j]
        scales[t] = quantize_row(row, bits, codes[t])


@compile_kernel
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


@compile_kernel
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


@compile_kernel
def scaled(sums, scales, weights, bias, product):
    """Write the `product` (T, W) in float32 of integer sums."""
    for t in range(sums.shape[0]):
        scale = scales[t]
        for j in range(sums.shape[1]):
            product[t, j] = F(sums[t, j]) * (scale * weights[j]) + bias[j]
