"""A layer of the encoder on a CPU as one differentiable function.

It computes what `Layer` in minbert/encoder.py does, with the same dropout, in fewer passes over
memory: products of PyTorch, and one kernel of minbert/layer_kernels.py between two of them. In
bfloat16, states and their gradients are bfloat16 between kernels, sums and norms float32. The
backward pass is written by hand.

Shapes: T tokens, S sequences, L columns of the padded grid, A heads, D width of a head, H = A D,
W width of the feed-forward part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from minbert.attention import AttentionLayout
from minbert.dropout import Dropout
from minbert.linear import has_bfloat16, input_gradient, product, weight_gradient

if TYPE_CHECKING:
    from minbert.encoder import Layer

FEW = 64  # rows that are not worth a second thread


def fused_type(hidden: Tensor, dtype: torch.dtype) -> bool:
    """Return whether fused layers can take `hidden` and compute products in `dtype`."""
    if hidden.device.type != "cpu" or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    known = hidden.dtype in (torch.float32, torch.bfloat16)
    return known and (dtype == torch.float32 or (dtype == torch.bfloat16 and has_bfloat16()))


def fused_layer(
    layer: Layer, hidden: Tensor, layout: AttentionLayout, dtype: torch.dtype
) -> Tensor:
    """Apply a layer to states (T, H), with products in `dtype`; return states in `dtype`."""
    parts = Parts(layer, layout, dtype)
    result = FusedLayer.apply(hidden.to(dtype), parts, *layer.parameters())
    assert isinstance(result, Tensor)
    return result


@dataclass(frozen=True)
class Drawn:
    """Random bytes of a dropout layer; an element is dropped if its byte is below `dropped`."""

    bytes: np.ndarray
    dropped: int
    keep: np.float32

    @classmethod
    def by(cls, dropout: Dropout, *shape: int) -> Drawn:
        if not dropout.active:
            return cls(np.zeros((0,) * len(shape), np.uint8), 0, np.float32(1))
        drawn = dropout.stream.random_bytes(torch.Size(shape), torch.device("cpu"))
        return cls(drawn.numpy(), dropout.dropped, np.float32(dropout.scale))

    @property
    def values(self) -> tuple[np.ndarray, int, np.float32]:
        return self.bytes, self.dropped, self.keep


class Parts:
    """What a layer's passes need: its linear layers and norms, and the layout of the batch."""

    def __init__(self, layer: Layer, layout: AttentionLayout, dtype: torch.dtype) -> None:
        from minbert.vector_math import ACTIVATIONS

        attention = layer.attention
        self.linears = (attention.qkv, attention.output, layer.up, layer.down)
        self.norms = (layer.attention_norm, layer.output_norm)
        self.attention_dropout, self.dropout = attention.dropout, layer.dropout
        self.activation = ACTIVATIONS[layer.activation_name]
        self.dtype, self.kernel = dtype, attention.qkv.kernel
        self.tokens, self.heads = layout.tokens, layout.heads
        self.rows, self.columns = layout.rows, layout.columns
        self.padding = layout.tokens - layout.batch.tokens
        self.starts, self.lengths = layout.batch.starts.numpy(), layout.batch.lengths.numpy()
        self.width = attention.output.weight.shape[1] // layout.heads

    @property
    def scale(self) -> np.float32:
        return np.float32(1 / math.sqrt(self.width))

    def grid(self, *last: int) -> Tensor:
        """Return an uninitialised grid (S, A, L, ...)."""
        return torch.empty(self.rows, self.heads, self.columns, *last, dtype=self.dtype)


class FusedLayer(torch.autograd.Function):
    """The layer as a function of its states and its parameters, in the order of `parameters()`."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, parts: Parts, *parameters: Tensor) -> Tensor:
        ctx.parts = parts
        weights = [linear.converted(parts.dtype) for linear in parts.linears]
        qkv, ctx.attention = attend(hidden, weights[0], parts)
        attended = product(qkv, *weights[1], parts.kernel)  # (T, H)
        middle, ctx.first = add_and_norm(hidden, attended, parts.norms[0], parts)
        wide = product(middle, *weights[2], parts.kernel)  # (T, W)
        active = activate(wide, parts)
        down = product(active, *weights[3], parts.kernel)  # (T, H)
        result, ctx.second = add_and_norm(middle, down, parts.norms[1], parts)
        ctx.save_for_backward(hidden, qkv, middle, wide, active, *(w for w, _ in weights))
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        hidden, context, middle, wide, active, *weights = ctx.saved_tensors
        parts, kernel = ctx.parts, ctx.parts.kernel
        wanted = any(ctx.needs_input_grad[2:])

        def of_weight(gradient: Tensor, inputs: Tensor) -> Tensor | None:
            return weight_gradient(gradient, inputs, kernel) if wanted else None

        grad = grad.to(parts.dtype).contiguous()
        residual, grad, norm2 = add_and_norm_backward(grad, ctx.second, parts.norms[1], parts)
        down = of_weight(grad, active), norm2.pop()
        grad, bias = activate_backward(input_gradient(grad, weights[3], kernel), wide, parts)
        up = of_weight(grad, middle), bias
        grad = input_gradient(grad, weights[2], kernel, residual)
        residual, grad, norm1 = add_and_norm_backward(grad, ctx.first, parts.norms[0], parts)
        output = of_weight(grad, context), norm1.pop()
        grad = attend_backward(input_gradient(grad, weights[1], kernel), ctx.attention, parts)
        qkv = of_weight(grad, hidden), column_sums(grad)
        to_hidden = None
        if ctx.needs_input_grad[0]:
            to_hidden = input_gradient(grad, weights[0], kernel, residual)
        if not wanted:
            return to_hidden, None, *(12 * [None])
        return to_hidden, None, *qkv, *output, *norm1, *up, *down, *norm2


Normed = tuple[Tensor, np.ndarray, Drawn]  # numbers before gain and shift, inverse deviations


def add_and_norm(
    states: Tensor, added: Tensor, norm: nn.LayerNorm, parts: Parts
) -> tuple[Tensor, Normed]:
    """Return norm(states + dropout(added)), (T, H), and what its backward pass needs."""
    from minbert.layer_kernels import add_and_norm as kernel

    out, normal = torch.empty_like(states), torch.empty_like(states)
    inverses = np.empty(len(states), np.float32)
    drawn = Drawn.by(parts.dropout, *states.shape)
    gain, shift = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    inputs = (array(states), array(added), *drawn.values, gain, shift, np.float32(norm.eps))
    in_shares(kernel, len(states), *inputs, array(out), array(normal), inverses)
    return out, (normal, inverses, drawn)


def add_and_norm_backward(
    grad: Tensor, normed: Normed, norm: nn.LayerNorm, parts: Parts
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return the gradients of `states`, of `added`, and of the norm's weight and bias.

    The last of the list is the sum of the gradient of `added` over the tokens (H,).
    """
    from minbert.layer_kernels import add_and_norm_backward as kernel

    normal, inverses, drawn = normed
    states, added = torch.empty_like(grad), torch.empty_like(grad)
    inputs = array(grad), array(normal), inverses, *drawn.values, norm.weight.detach().numpy()
    outputs = array(states), array(added)
    sums = in_shares(kernel, len(grad), *inputs, *outputs, sums=(3, grad.shape[1]))
    return states, added, list(torch.from_numpy(sums).unbind())


def activate(wide: Tensor, parts: Parts) -> Tensor:
    """Return the activation function of (T, W)."""
    from minbert.layer_kernels import activate as kernel

    out = torch.empty_like(wide)
    in_shares(kernel, len(wide), array(wide), parts.activation, array(out))
    return out


def activate_backward(grad: Tensor, wide: Tensor, parts: Parts) -> tuple[Tensor, Tensor]:
    """Return the gradient of `wide` (T, W), and its sum over the tokens (W,)."""
    from minbert.layer_kernels import activate_backward as kernel

    out = torch.empty_like(wide)
    inputs = array(grad), array(wide), parts.activation, array(out)
    sums = in_shares(kernel, len(wide), *inputs, sums=(wide.shape[1],))
    return out, torch.from_numpy(sums)


Attended = tuple[Tensor, ...]


def attend(
    hidden: Tensor, weight: tuple[Tensor, Tensor], parts: Parts
) -> tuple[Tensor, tuple[Attended, Drawn]]:
    """Return the context (T, H) of all heads, and what its backward pass needs."""
    from minbert import layer_kernels as kernels

    qkv = array(product(hidden, *weight, parts.kernel))  # (T, 3H)
    rows, heads, columns, width = parts.rows, parts.heads, parts.columns, parts.width
    places = parts.starts, parts.lengths
    grids = [parts.grid(width) for _ in range(4)]
    query, key, value, context = grids
    for number, grid in enumerate((query, key, value)):
        factor = parts.scale if number == 0 else np.float32(1)
        first = number * heads * width
        in_shares(kernels.to_grid, rows, qkv, first, factor, *places, array(grid))
    shares = parts.grid(columns)
    torch.bmm(flat(query), flat(key).transpose(1, 2), out=flat(shares))
    drawn = Drawn.by(parts.attention_dropout, rows, heads, columns, columns)
    weights = parts.grid(columns) if drawn.dropped else shares
    scores = array(shares), parts.lengths, *drawn.values, array(shares), array(weights)
    in_shares(kernels.softmax, rows, *scores)
    torch.bmm(flat(weights), flat(value), out=flat(context))
    joined = torch.empty(parts.tokens, heads * width, dtype=parts.dtype)
    joined[parts.tokens - parts.padding :] = 0
    in_shares(kernels.from_grid, rows, array(context), 0, np.float32(1), *places, array(joined))
    return joined, ((query, key, value, shares, weights), drawn)


def attend_backward(grad: Tensor, attended: tuple[Attended, Drawn], parts: Parts) -> Tensor:
    """Return the gradient of queries, keys and values (T, 3H) from that of the context (T, H)."""
    from minbert import layer_kernels as kernels

    (query, key, value, shares, weights), drawn = attended
    rows, width = parts.rows, parts.heads * parts.width
    places, one = (parts.starts, parts.lengths), np.float32(1)
    context, scores = parts.grid(parts.width), parts.grid(parts.columns)
    in_shares(kernels.to_grid, rows, array(grad), 0, one, *places, array(context))
    to_query, to_key, to_value = (parts.grid(parts.width) for _ in range(3))
    torch.bmm(flat(weights).transpose(1, 2), flat(context), out=flat(to_value))
    torch.bmm(flat(context), flat(value).transpose(1, 2), out=flat(scores))
    weighted = array(scores), array(shares), *drawn.values, array(scores)
    in_shares(kernels.softmax_backward, rows, *weighted)
    torch.bmm(flat(scores), flat(key), out=flat(to_query))
    torch.bmm(flat(scores).transpose(1, 2), flat(query), out=flat(to_key))
    qkv = torch.empty(parts.tokens, 3 * width, dtype=parts.dtype)
    qkv[parts.tokens - parts.padding :] = 0
    for number, grid in enumerate((to_query, to_key, to_value)):
        factor = parts.scale if number == 0 else one
        inputs = array(grid), number * width, factor, *places, array(qkv)
        in_shares(kernels.from_grid, rows, *inputs)
    return qkv


def column_sums(rows: Tensor) -> Tensor:
    """Return the sum over the tokens (W,) of (T, W) in float32."""
    from minbert.layer_kernels import column_sums as kernel

    return torch.from_numpy(in_shares(kernel, len(rows), array(rows), sums=(rows.shape[1],)))


def flat(grid: Tensor) -> Tensor:
    """View a grid (S, A, L, ...) as a batch of matrices (S A, L, ...)."""
    return grid.flatten(0, 1)


def array(tensor: Tensor) -> np.ndarray:
    """Return the array of a tensor in the form that kernels take: bfloat16 as int16 bits."""
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    found: np.ndarray = tensor.detach().numpy()
    return found


def in_shares(
    kernel: Callable[..., None], rows: int, *values: object, sums: tuple[int, ...] = ()
) -> np.ndarray:
    """Call a kernel on `rows` rows, shared among the threads that PyTorch uses here.

    With `sums`, the shape of the kernel's last argument, each share has its own; return their sum.
    """
    shares = max(1, min(torch.get_num_threads(), rows // FEW))
    borders = [rows * share // shares for share in range(shares + 1)]
    found = np.empty((shares, *sums), np.float32)

    def call(share: int) -> None:
        last = (found[share],) if sums else ()
        kernel(borders[share], borders[share + 1], *values, *last)

    waiting = [helpers(shares).submit(call, share) for share in range(1, shares)]
    call(0)
    for one in waiting:
        one.result()
    return found[0] if shares == 1 else found.sum(0)


@cache
def helpers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)
