"""Kernels between the float products of an encoder layer, compiled by Numba on first use.

A layer's products are oneDNN's or MKL's. Each kernel here does in one pass over its rows what
PyTorch's operators would do in several, in float32, for arrays of float32 or of bfloat16 (as int16
bits). The kernels use one thread and release Python's lock; each works on the rows from `begin` to
`end`, so that threads can share them (`minbert/fused_layer.py`).

Shapes: T tokens, S sequences, L columns of the padded grid, A attention heads, D width of a head,
H = A D. Dropout: `drawn` has random bytes; an element is dropped if its byte is below `dropped`,
and the others are multiplied by `rescale`. Loops with and without dropout stand apart for speed.
"""

from __future__ import annotations

import numpy as np

from minbert.vector_math import (
    GELU,
    TANH_GELU,
    F,
    compile_kernel,
    exp,
    gelu,
    gelu_slope,
    load,
    rounded_to,
    tanh_gelu,
    tanh_gelu_slope,
)


@compile_kernel
def add_and_norm(
    begin, end, states, product, drawn, dropped, rescale, gain, shift, eps, out, normal, inverses
):
    """Compute out = norm(states + dropout(product)), all (T, H).

    `normal` (T, H) gets the numbers before gain and shift, and `inverses` (T,) the inverse standard
    deviations, for the backward pass; without one, they have no rows. `out` may be `product`.
    """
    width = states.shape[1]
    row = np.empty(width, np.float32)
    for t in range(begin, end):
        total = F(0.0)
        if dropped > 0:
            for j in range(width):
                kept = rescale if drawn[t, j] >= dropped else F(0.0)
                row[j] = load(states[t, j]) + kept * load(product[t, j])
                total += row[j]
        else:
            for j in range(width):
                row[j] = load(states[t, j]) + load(product[t, j])
                total += row[j]
        mean = total / F(width)
        variance = F(0.0)
        for j in range(width):
            variance += (row[j] - mean) * (row[j] - mean)
        inverse = F(1.0) / np.sqrt(variance / F(width) + eps)
        if len(inverses) > 0:
            inverses[t] = inverse
            for j in range(width):
                normal[t, j] = rounded_to(normal, (row[j] - mean) * inverse)
        for j in range(width):
            out[t, j] = rounded_to(out, (row[j] - mean) * inverse * gain[j] + shift[j])


@compile_kernel
def add_and_norm_backward(
    begin, end, grad, normal, inverses, drawn, dropped, rescale, gain, to_states, to_product, sums
):
    """Compute the gradients `to_states` and `to_product` from that of the output, all (T, H).

    `sums` (3, H) gets this share's gradients of gain and shift, and the sum of `to_product`, which
    is the gradient of the bias of the product before.
    """
    width = grad.shape[1]
    row = np.empty(width, np.float32)
    sums[:] = F(0.0)
    to_gain, to_shift, to_bias = sums[0], sums[1], sums[2]
    for t in range(begin, end):
        total, aligned = F(0.0), F(0.0)
        for j in range(width):
            value, x = load(grad[t, j]), load(normal[t, j])
            to_shift[j] += value
            to_gain[j] += value * x
            value *= gain[j]
            row[j] = value
            total += value
            aligned += value * x
        mean, slope, inverse = total / F(width), aligned / F(width), inverses[t]
        if dropped > 0:
            for j in range(width):
                value = inverse * (row[j] - mean - slope * load(normal[t, j]))
                kept = value * (rescale if drawn[t, j] >= dropped else F(0.0))
                to_states[t, j] = rounded_to(to_states, value)
                to_product[t, j] = rounded_to(to_product, kept)
                to_bias[j] += kept
        else:
            for j in range(width):
                value = inverse * (row[j] - mean - slope * load(normal[t, j]))
                to_states[t, j] = rounded_to(to_states, value)
                to_product[t, j] = rounded_to(to_product, value)
                to_bias[j] += value


@compile_kernel
def activate(begin, end, wide, activation, out):
    """Compute out = activation(wide), both (T, W)."""
    for t in range(begin, end):
        if activation == GELU:
            for j in range(wide.shape[1]):
                out[t, j] = rounded_to(out, gelu(load(wide[t, j])))
        elif activation == TANH_GELU:
            for j in range(wide.shape[1]):
                out[t, j] = rounded_to(out, tanh_gelu(load(wide[t, j])))
        else:
            for j in range(wide.shape[1]):
                x = load(wide[t, j])
                out[t, j] = rounded_to(out, max(x, F(0.0)) if x == x else x)


@compile_kernel
def activate_backward(begin, end, grad, wide, activation, to_wide, sums):
    """Compute the gradient `to_wide` (T, W) from that of the output; `sums` (W,) gets its sum."""
    row = np.empty(wide.shape[1], np.float32)
    sums[:] = F(0.0)
    for t in range(begin, end):
        if activation == GELU:
            for j in range(len(row)):
                row[j] = gelu_slope(load(wide[t, j]))
        elif activation == TANH_GELU:
            for j in range(len(row)):
                row[j] = tanh_gelu_slope(load(wide[t, j]))
        else:
            for j in range(len(row)):
                row[j] = F(1.0) if load(wide[t, j]) > F(0.0) else F(0.0)
        for j in range(len(row)):
            value = row[j] * load(grad[t, j])
            to_wide[t, j] = rounded_to(to_wide, value)
            sums[j] += value


@compile_kernel
def to_grid(begin, end, rows, first, factor, starts, lengths, grid):
    """Write `factor` times columns of packed tokens (T, W) into the padded grid (S, A, L, D).

    The columns begin with `first`; cells without a token are 0.
    """
    heads, columns, width = grid.shape[1], grid.shape[2], grid.shape[3]
    zero = rounded_to(grid, F(0.0))
    for i in range(begin, end):
        for head in range(heads):
            place = first + head * width
            for c in range(columns):
                cell = grid[i, head, c]
                if c < lengths[i]:
                    row = rows[starts[i] + c, place : place + width]
                    for d in range(width):
                        cell[d] = rounded_to(grid, factor * load(row[d]))
                else:
                    for d in range(width):
                        cell[d] = zero


@compile_kernel
def from_grid(begin, end, grid, first, factor, starts, lengths, rows):
    """Write `factor` times the grid's cells with tokens into columns of packed tokens (T, W)."""
    heads, width = grid.shape[1], grid.shape[3]
    for i in range(begin, end):
        for c in range(lengths[i]):
            for head in range(heads):
                cell, place = grid[i, head, c], first + head * width
                row = rows[starts[i] + c, place : place + width]
                for d in range(width):
                    row[d] = rounded_to(rows, factor * load(cell[d]))


@compile_kernel
def softmax(begin, end, scores, lengths, drawn, dropped, rescale, shares, weights):
    """Compute `shares`, the softmax of `scores` over keys, and weights = dropout(shares).

    All are (S, A, L, L); the shares of cells without a token are 0. Without dropout, `weights` may
    be the same array as `shares`.
    """
    heads, columns = scores.shape[1], scores.shape[2]
    buffer = np.empty(columns * columns, np.float32)
    grid = buffer.reshape(columns, columns)
    for i in range(begin, end):
        n = lengths[i]
        for head in range(heads):
            source, target, weighted = scores[i, head], shares[i, head], weights[i, head]
            for r in range(columns):
                row, most = grid[r], load(source[r, 0])
                for j in range(columns):
                    row[j] = load(source[r, j])
                for j in range(1, n):
                    most = max(most, row[j])
                for j in range(columns):
                    row[j] -= most
            for j in range(len(buffer)):  # one long loop, which is faster than many short ones
                buffer[j] = exp(buffer[j])
            for r in range(columns):
                row, total = grid[r], F(0.0)
                for j in range(n, columns):
                    row[j] = F(0.0)
                for j in range(columns):
                    total += row[j]
                share = F(1.0) / total
                for j in range(columns):
                    row[j] *= share
                    target[r, j] = rounded_to(shares, row[j])
                if dropped > 0:
                    for j in range(columns):
                        kept = rescale if drawn[i, head, r, j] >= dropped else F(0.0)
                        weighted[r, j] = rounded_to(weights, kept * row[j])


@compile_kernel
def softmax_backward(begin, end, grad, shares, drawn, dropped, rescale, to_scores):
    """Compute the gradient of the scores from that of the weights, all (S, A, L, L)."""
    heads, columns = shares.shape[1], shares.shape[2]
    row = np.empty(columns, np.float32)
    for i in range(begin, end):
        for head in range(heads):
            for r in range(columns):
                source, share, target = grad[i, head, r], shares[i, head, r], to_scores[i, head, r]
                total = F(0.0)
                if dropped > 0:
                    for j in range(columns):
                        kept = rescale if drawn[i, head, r, j] >= dropped else F(0.0)
                        row[j] = kept * load(source[j])
                        total += row[j] * load(share[j])
                else:
                    for j in range(columns):
                        row[j] = load(source[j])
                        total += row[j] * load(share[j])
                for j in range(columns):
                    target[j] = rounded_to(to_scores, load(share[j]) * (row[j] - total))


@compile_kernel
def column_sums(begin, end, rows, sums):
    """Write the sums of the columns of `rows` (T, W) from `begin` to `end` to `sums` (W,)."""
    sums[:] = F(0.0)
    for t in range(begin, end):
        for j in range(len(sums)):
            sums[j] += load(rows[t, j])
