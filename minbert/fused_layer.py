"""A layer of the encoder on a CPU as one differentiable function.

It computes what `Layer` in minbert/encoder.py does, with the same dropout, in fewer passes over
memory: products of PyTorch, and one kernel of minbert/layer_kernels.py between two of them. In
bfloat16, states and their gradients are bfloat16 between kernels, sums and norms float32. The
backward pass is written by hand. Kernels are imported where they are used, as Numba takes half a
second to load.

Shapes: T tokens, S sequences, L columns of the padded grid, A heads, D width of a head, H = A D,
W width of the feed-forward part.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from minbert.attention import AttentionLayout
from minbert.kernel_calls import DropoutBytes, array, in_shares, on_sequences
from minbert.linear import has_bfloat16, input_gradient, is_bfloat16, product, weight_gradient

if TYPE_CHECKING:
    from minbert.encoder import Layer


def fused_dtype(hidden: Tensor) -> torch.dtype | None:
    """Return the type of products for which `fused_layer` can take `hidden`; None if it cannot."""
    if hidden.device.type != "cpu" or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return None
    if is_bfloat16(hidden):
        return torch.bfloat16 if has_bfloat16() else None
    return torch.float32 if hidden.dtype == torch.float32 else None


def fused_layer(
    layer: Layer, hidden: Tensor, layout: AttentionLayout, dtype: torch.dtype
) -> Tensor:
    """Apply a layer to states (T, H), with products in `dtype`; return states in `dtype`."""
    parts = LayerInputs(layer, layout, dtype)
    result = FusedLayer.apply(hidden.to(dtype), parts, *layer.parameters())
    assert isinstance(result, Tensor)
    return result


class LayerInputs:
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
    def forward(ctx: Any, hidden: Tensor, parts: LayerInputs, *parameters: Tensor) -> Tensor:
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
        residual, grad, norm2, bias = add_and_norm_backward(grad, ctx.second, parts.norms[1], parts)
        down = of_weight(grad, active), bias
        grad, bias = activate_backward(input_gradient(grad, weights[3], kernel), wide, parts)
        up = of_weight(grad, middle), bias
        grad = input_gradient(grad, weights[2], kernel, residual)
        residual, grad, norm1, bias = add_and_norm_backward(grad, ctx.first, parts.norms[0], parts)
        output = of_weight(grad, context), bias
        grad = attend_backward(input_gradient(grad, weights[1], kernel), ctx.attention, parts)
        qkv = of_weight(grad, hidden), column_sums(grad)
        to_hidden = None
        if ctx.needs_input_grad[0]:
            to_hidden = input_gradient(grad, weights[0], kernel, residual)
        if not wanted:
            return to_hidden, None, *([None] * (len(ctx.needs_input_grad) - 2))
        return to_hidden, None, *qkv, *output, *norm1, *up, *down, *norm2


# Numbers before gain and shift (T, H), inverse standard deviations (T,), dropout.
Normed = tuple[Tensor, np.ndarray, DropoutBytes]


def add_and_norm(
    states: Tensor, added: Tensor, norm: nn.LayerNorm, parts: LayerInputs
) -> tuple[Tensor, Normed]:
    """Return norm(states + dropout(added)), (T, H), and what its backward pass needs."""
    from minbert.layer_kernels import add_and_norm as kernel

    out, normal = torch.empty_like(states), torch.empty_like(states)
    inverses = np.empty(len(states), np.float32)
    drawn = DropoutBytes.draw(parts.dropout, *states.shape)
    gain, shift = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    inputs = (array(states), array(added), *drawn.values, gain, shift, np.float32(norm.eps))
    in_shares(kernel, len(states), *inputs, array(out), array(normal), inverses)
    return out, (normal, inverses, drawn)


def add_and_norm_backward(
    grad: Tensor, normed: Normed, norm: nn.LayerNorm, parts: LayerInputs
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor], Tensor]:
    """Return the gradients of `states`, `added`, the norm's weight and bias, and added's bias (H,).

    The last is the sum of the gradient of `added` over the tokens.
    """
    from minbert.layer_kernels import add_and_norm_backward as kernel

    normal, inverses, drawn = normed
    states, added = torch.empty_like(grad), torch.empty_like(grad)
    inputs = array(grad), array(normal), inverses, *drawn.values, norm.weight.detach().numpy()
    outputs = array(states), array(added)
    sums = in_shares(kernel, len(grad), *inputs, *outputs, sums=(3, grad.shape[1]))
    gain, shift, bias = torch.from_numpy(sums).unbind()
    return states, added, (gain, shift), bias


def activate(wide: Tensor, parts: LayerInputs) -> Tensor:
    """Return the activation function of (T, W)."""
    from minbert.layer_kernels import activate as kernel

    out = torch.empty_like(wide)
    in_shares(kernel, len(wide), array(wide), parts.activation, array(out))
    return out


def activate_backward(grad: Tensor, wide: Tensor, parts: LayerInputs) -> tuple[Tensor, Tensor]:
    """Return the gradient of `wide` (T, W), and its sum over the tokens (W,)."""
    from minbert.layer_kernels import activate_backward as kernel

    out = torch.empty_like(wide)
    inputs = array(grad), array(wide), parts.activation, array(out)
    sums = in_shares(kernel, len(wide), *inputs, sums=(wide.shape[1],))
    return out, torch.from_numpy(sums)


Attended = tuple[Tensor, ...]


def attend(
    hidden: Tensor, weight: tuple[Tensor, Tensor], parts: LayerInputs
) -> tuple[Tensor, tuple[Attended, DropoutBytes]]:
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
        on_sequences(kernels.to_grid, rows, qkv, first, factor, *places, array(grid))
    shares = parts.grid(columns)
    torch.bmm(flat(query), flat(key).transpose(1, 2), out=flat(shares))
    drawn = DropoutBytes.draw(parts.attention_dropout, rows, heads, columns, columns)
    weights = parts.grid(columns) if drawn.dropped else shares
    scores = array(shares), parts.lengths, *drawn.values, array(shares), array(weights)
    on_sequences(kernels.softmax, rows, *scores)
    torch.bmm(flat(weights), flat(value), out=flat(context))
    joined = torch.empty(parts.tokens, heads * width, dtype=parts.dtype)
    joined[parts.tokens - parts.padding :] = 0
    on_sequences(kernels.from_grid, rows, array(context), 0, np.float32(1), *places, array(joined))
    return joined, ((query, key, value, shares, weights), drawn)


def attend_backward(
    grad: Tensor, attended: tuple[Attended, DropoutBytes], parts: LayerInputs
) -> Tensor:
    """Return the gradient of queries, keys and values (T, 3H) from that of the context (T, H)."""
    from minbert import layer_kernels as kernels

    (query, key, value, shares, weights), drawn = attended
    rows, width = parts.rows, parts.heads * parts.width
    places, one = (parts.starts, parts.lengths), np.float32(1)
    context, scores = parts.grid(parts.width), parts.grid(parts.columns)
    on_sequences(kernels.to_grid, rows, array(grad), 0, one, *places, array(context))
    to_query, to_key, to_value = (parts.grid(parts.width) for _ in range(3))
    torch.bmm(flat(weights).transpose(1, 2), flat(context), out=flat(to_value))
    torch.bmm(flat(context), flat(value).transpose(1, 2), out=flat(scores))
    weighted = array(scores), array(shares), *drawn.values, array(scores)
    on_sequences(kernels.softmax_backward, rows, *weighted)
    torch.bmm(flat(scores), flat(key), out=flat(to_query))
    torch.bmm(flat(scores).transpose(1, 2), flat(query), out=flat(to_key))
    qkv = torch.empty(parts.tokens, 3 * width, dtype=parts.dtype)
    qkv[parts.tokens - parts.padding :] = 0
    for number, grid in enumerate((to_query, to_key, to_value)):
        factor = parts.scale if number == 0 else one
        inputs = array(grid), number * width, factor, *places, array(qkv)
        on_sequences(kernels.from_grid, rows, *inputs)
    return qkv


def column_sums(rows: Tensor) -> Tensor:
    """Return the sum over the tokens (W,) of (T, W) in float32."""
    from minbert.layer_kernels import column_sums as kernel

    return torch.from_numpy(in_shares(kernel, len(rows), array(rows), sums=(rows.shape[1],)))


def flat(grid: Tensor) -> Tensor:
    """View a grid (S, A, L, ...) as a batch of matrices (S A, L, ...)."""
    return grid.flatten(0, 1)
