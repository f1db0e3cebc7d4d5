"""Attention of packed tokens without a graph, compiled by Numba on first use.

Most sentences are short, and their attention is many small products, for which calls of a library,
copies into a padded grid, and a softmax of short rows take longer than the arithmetic. This kernel
computes a head of a sequence at a time, in buffers that stay in the nearest cache.

Shapes: T tokens, S sequences, A attention heads, D width of a head, H = A D.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from minbert.vector_math import OPTIONS, F, compile_kernel, exp, load, rounded_to

ROWS, COLUMNS = 4, 16  # of a tile: its sums fit in the registers of each instruction set


@intrinsic
def multiply_tile(context: Any, left: Any, right: Any, depth: Any, out: Any) -> Any:
    """Compute out = left right for arrays of float32 whose rows are contiguous.

    `left` is (ROWS, depth), `right` (depth, COLUMNS), `out` (ROWS, COLUMNS), or larger. The depth
    is at least 1. Numba does not keep sums in registers over a loop that it compiles from Python.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, vector = ir.FloatType(), ir.VectorType(ir.FloatType(), COLUMNS)
        undefined = ir.Constant(vector, ir.Undefined)
        first = ir.Constant(ir.VectorType(ir.IntType(32), COLUMNS), [0] * COLUMNS)

        def row(which: int, index: Any, kind: Any) -> Any:
            """Return a pointer to the beginning of a row, to numbers or vectors."""
            array = context.make_array(signature.args[which])(context, builder, arguments[which])
            stride = builder.extract_value(array.strides, 0)  # in bytes
            begin = builder.ptrtoint(array.data, stride.type)
            place = builder.add(begin, builder.mul(stride, index))
            return builder.inttoptr(place, kind.as_pointer())

        depth = arguments[2]
        lefts = [row(0, depth.type(r), number) for r in range(ROWS)]
        before, body = builder.block, builder.append_basic_block("depth")
        builder.branch(body)
        builder.position_at_end(body)
        k, sums = builder.phi(depth.type), [builder.phi(vector) for _ in range(ROWS)]
        many = builder.load(row(1, k, vector), align=4)
        following = builder.add(k, depth.type(1))
        k.add_incoming(depth.type(0), before)
        k.add_incoming(following, body)
        totals = []
        for pointer, total in zip(lefts, sums, strict=True):
            one = builder.load(builder.gep(pointer, [k]))
            one = builder.insert_element(undefined, one, ir.IntType(32)(0))
            one = builder.shuffle_vector(one, undefined, first)  # in all places
            term = builder.fmul(one, many, flags=["contract"])
            totals.append(builder.fadd(total, term, flags=["contract"]))
            total.add_incoming(ir.Constant(vector, [0.0] * COLUMNS), before)
            total.add_incoming(totals[-1], body)
        after = builder.append_basic_block("after")
        builder.cbranch(builder.icmp_signed("<", following, depth), body, after)
        builder.position_at_end(after)
        for r, total in enumerate(totals):
            builder.store(total, row(3, depth.type(r), vector), align=4)
        return context.get_dummy_value()

    return types.void(left, right, types.intp, out), generate


@njit(**OPTIONS)
def multiply(left, right, rows, depth, columns, out):
    """Compute out[:rows, :columns] = left[:rows, :depth] right[:depth, :columns].

    `out` is written in whole tiles, and `left` and `right` have numbers for them.
    """
    for r in range(0, rows, ROWS):
        for c in range(0, columns, COLUMNS):
            multiply_tile(left[r:], right[:, c:], depth, out[r:, c:])


@njit(inline="always", **OPTIONS)
def round_up(number, multiple):
    return (number + multiple - 1) // multiple * multiple


@compile_kernel
def attend(begin, end, qkv, starts, lengths, heads, scale, context):
    """Compute softmax(scale q k^T) v of the sequences from `begin` to `end`.

    `qkv` (T, 3H) are queries, keys and values of all heads, and `context` (T, H) the result. The
    scores of a sequence of L tokens need memory for L^2 numbers.
    """
    hidden = context.shape[1]
    width, longest = hidden // heads, 0
    for i in range(begin, end):
        longest = max(longest, lengths[i])
    most, wide = round_up(longest, COLUMNS), round_up(width, COLUMNS)
    queries, totals = np.empty((most, width), np.float32), np.empty((most, wide), np.float32)
    keys, values = np.empty((width, most), np.float32), np.empty((most, wide), np.float32)
    buffer, shares = np.empty(most * most, np.float32), np.empty(most, np.float32)
    for i in range(begin, end):
        n = lengths[i]
        rows, columns = round_up(n, ROWS), round_up(n, COLUMNS)
        cells = buffer[: n * columns]
        scores = buffer[: rows * columns].reshape(rows, columns)
        for head in range(heads):
            place = head * width
            for j in range(n):
                token = qkv[starts[i] + j]
                query = token[place : place + width]
                key = token[hidden + place : hidden + place + width]
                value = token[2 * hidden + place : 2 * hidden + place + width]
                for d in range(width):
                    queries[j, d] = scale * load(query[d])
                for d in range(width):
                    values[j, d] = load(value[d])
                for d in range(width):
                    keys[d, j] = load(key[d])
            multiply(queries, keys, n, width, n, scores)
            for r in range(n):
                row = scores[r]
                largest = row[0]
                for j in range(1, n):
                    largest = max(largest, row[j])
                for j in range(columns):
                    row[j] -= largest
            for j in range(len(cells)):  # one long loop, which is faster than many short ones
                cells[j] = exp(cells[j])
            for r in range(n):
                row, total = scores[r], F(0.0)
                for j in range(n):
                    total += row[j]
                shares[r] = F(1.0) / total
            multiply(scores, values, n, n, width, totals)
            for r in range(n):
                out = context[starts[i] + r, place : place + width]
                for d in range(width):
                    out[d] = rounded_to(context, shares[r] * totals[r, d])
