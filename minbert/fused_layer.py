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
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from minbert.attention import SDPA_TOKENS, AttentionLayout
from minbert.kernel_calls import DropoutBytes, array, in_shares, on_sequences
from minbert.linear import has_bfloat16, input_gradient, is_bfloat16, product, weight_gradient

if TYPE_CHECKING:
    from minbert.encoder import Layer


def fused_dtype(layer: Layer, hidden: Tensor, layout: AttentionLayout) -> torch.dtype | None:
    """Return the type of products for kernels between them; None for a layer as it is written.

    In training, it is that of `fused_layer`, else of `minbert/inference_layer.py`.
    """
    if hidden.device.type != "cpu" or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return None
    if hidden.dtype not in (torch.float32, torch.bfloat16):
        return None
    if not (trains(layer, layout) if layer.training else infers(layer, layout)):
        return None
    if is_bfloat16(hidden):
        return torch.bfloat16 if has_bfloat16() else None
    return None if torch.is_autocast_enabled("cpu") else torch.float32


def trains(layer: Layer, layout: AttentionLayout) -> bool:
    """Return whether `fused_layer` serves for a layer in training.

    Without dropout of attention, PyTorch's fused attention needs less memory for long texts.
    """
    if layer.output_norm.weight.dtype != torch.float32:
        return False
    return layout.columns <= SDPA_TOKENS or layer.attention.dropout.active


def infers(layer: Layer, layout: AttentionLayout) -> bool:
    """Return whether `inference_layer` serves for a layer in evaluation mode.

    It makes no graph, has no dropout, and calls no hooks of the modules in the layer.
    """
    if torch.is_grad_enabled() or layer.compiled is not None or not layout.batch.kernels:
        return False
    if layer.dropout.active or layer.attention.dropout.active:
        return False
    inner = (module for module in layer.modules() if module is not layer)
    return not any(one._forward_hooks or one._forward_pre_hooks for one in inner)


def fused_layer(
    layer: Layer, hidden: Tensor, layout: AttentionLayout, dtype: torch.dtype
) -> Tensor:
    """Apply a layer to states (T, H), with products in `dtype`; return states in `dtype`.

    Hooks of the modules in the layer are not called.
    """
    qkv, output = layer.attention.qkv, layer.attention.output
    modules = (qkv, output, layer.attention_norm, layer.up, layer.down, layer.output_norm)
    parameters = [part for module in modules for part in (module.weight, module.bias)]
    result = FusedLayer.apply(hidden.to(dtype), LayerInputs(layer, layout, dtype), *parameters)
    assert isinstance(result, Tensor)
    return result


class LayerInputs:
    """What a layer's passes need beside tensors: sizes, dropout, and the layout of the batch."""

    def __init__(self, layer: Layer, layout: AttentionLayout, dtype: torch.dtype) -> None:
        from minbert.vector_math import ACTIVATIONS

        self.attention_dropout, self.dropout = layer.attention.dropout, layer.dropout
        self.activation = ACTIVATIONS[layer.activation_name]
        self.eps = [np.float32(one.eps) for one in (layer.attention_norm, layer.output_norm)]
        self.dtype, self.kernel = dtype, layer.attention.qkv.kernel
        self.tokens, self.heads = layout.tokens, layout.heads
        self.rows, self.columns = layout.rows, layout.columns
        self.padding = layout.tokens - layout.batch.tokens
        self.starts, self.lengths = layout.batch.starts.numpy(), layout.batch.lengths.numpy()
        self.width = layer.attention.output.weight.shape[1] // layout.heads

    @property
    def scale(self) -> np.float32:
        return np.float32(1 / math.sqrt(self.width))

    def grid(self, *last: int) -> Tensor:
        """Return an uninitialised grid (S, A, L, ...)."""
        shape = self.rows, self.heads, self.columns, *last
        return torch.empty(shape, dtype=self.dtype, device="cpu")


class FusedLayer(torch.autograd.Function):
    """The layer as a function of its states, and of weights and biases in their order of use."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, parts: LayerInputs, *parameters: Tensor) -> Tensor:
        wqkv, bqkv, wo, bo, gain1, shift1, wup, bup, wdown, bdown, gain2, shift2 = parameters
        weights = [one.to(parts.dtype) for one in (wqkv, wo, wup, wdown)]
        biases = [one.to(parts.dtype) for one in (bqkv, bo, bup, bdown)]
        qkv = product(hidden, weights[0], biases[0], parts.kernel)  # (T, 3H)
        context, attended, drawn0 = attend(qkv, parts)
        added = product(context, weights[1], biases[1], parts.kernel)  # (T, H)
        drawn1 = DropoutBytes.draw(parts.dropout, *hidden.shape)
        middle, *normed1 = add_and_norm(hidden, added, drawn1, gain1, shift1, parts.eps[0])
        wide = product(middle, weights[2], biases[2], parts.kernel)  # (T, W)
        active = activate(wide, parts.activation, torch.empty_like(wide))
        added = product(active, weights[3], biases[3], parts.kernel)  # (T, H)
        drawn2 = DropoutBytes.draw(parts.dropout, *hidden.shape)
        result, *normed2 = add_and_norm(middle, added, drawn2, gain2, shift2, parts.eps[1])
        drawn = drawn0, drawn1, drawn2
        ctx.parts, ctx.rates = parts, [(one.dropped, one.rescale) for one in drawn]
        # All tensors are saved here, so that the backward pass frees them.
        states = hidden, context, middle, wide, active, *normed1, *normed2, gain1, gain2
        ctx.save_for_backward(*states, *weights, *attended, *(one.bytes for one in drawn))
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        parts, kernel = ctx.parts, ctx.parts.kernel
        hidden, context, middle, wide, active, *more = ctx.saved_tensors
        normed1, normed2, (gain1, gain2), weights = more[:2], more[2:4], more[4:6], more[6:10]
        attended, drawn = (
            more[10:15],
            list(map(DropoutBytes, more[15:], *zip(*ctx.rates, strict=True))),
        )
        wanted = any(ctx.needs_input_grad[2:])

        def of_weight(gradient: Tensor, inputs: Tensor) -> Tensor | None:
            return weight_gradient(gradient, inputs, kernel) if wanted else None

        grad = grad.to(parts.dtype).contiguous()
        residual, grad, norm2, bias = add_and_norm_backward(grad, normed2, drawn[2], gain2)
        down = of_weight(grad, active), bias
        grad, bias = activate_backward(input_gradient(grad, weights[3], kernel), wide, parts)
        up = of_weight(grad, middle), bias
        grad = input_gradient(grad, weights[2], kernel, residual)
        residual, grad, norm1, bias = add_and_norm_backward(grad, normed1, drawn[1], gain1)
        output = of_weight(grad, context), bias
        grad = input_gradient(grad, weights[1], kernel)
        grad = attend_backward(grad, attended, drawn[0], parts)
        to_hidden = None
        if ctx.needs_input_grad[0]:
            to_hidden = input_gradient(grad, weights[0], kernel, residual)
        if not wanted:
            return to_hidden, None, *([None] * (len(ctx.needs_input_grad) - 2))
        qkv = weight_gradient(grad, hidden, kernel), column_sums(grad)
        return to_hidden, None, *qkv, *output, *norm1, *up, *down, *norm2


def add_and_norm(
    states: Tensor,
    added: Tensor,
    drawn: DropoutBytes,
    gain: Tensor,
    shift: Tensor,
    eps: np.float32,
    keeps: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return norm(states + dropout(added)), all (T, H), and what the backward pass needs.

    These are the numbers before gain and shift (T, H), and inverse standard deviations (T,). If it
    `keeps` nothing, they have no rows, and `added` gets the result.
    """
    from minbert.layer_kernels import add_and_norm as kernel

    out, normal = (torch.empty_like(states) if keeps else part for part in (added, added[:0]))
    inverses = torch.empty(len(normal), dtype=torch.float32, device="cpu")
    inputs = array(states), array(added), *drawn.values, array(gain), array(shift), eps
    in_shares(kernel, len(states), *inputs, array(out), array(normal), array(inverses))
    return out, normal, inverses


def add_and_norm_backward(
    grad: Tensor, normed: Sequence[Tensor], drawn: DropoutBytes, gain: Tensor
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor], Tensor]:
    """Return the gradients of `states`, `added`, the norm's weight and bias, and added's bias (H,).

    The last is the sum of the gradient of `added` over the tokens.
    """
    from minbert.layer_kernels import add_and_norm_backward as kernel

    states, added = torch.empty_like(grad), torch.empty_like(grad)
    inputs = array(grad), *map(array, normed), *drawn.values, array(gain)
    outputs = array(states), array(added)
    sums = in_shares(kernel, len(grad), *inputs, *outputs, sums=(3, grad.shape[1]))
    to_gain, to_shift, bias = torch.from_numpy(sums).unbind()
    return states, added, (to_gain, to_shift), bias


def activate(wide: Tensor, activation: int, out: Tensor) -> Tensor:
    """Write the activation function of (T, W) to `out`, which may be `wide`; return it."""
    from minbert.layer_kernels import activate as kernel

    in_shares(kernel, len(wide), array(wide), activation, array(out))
    return out


def activate_backward(grad: Tensor, wide: Tensor, parts: LayerInputs) -> tuple[Tensor, Tensor]:
    """Return the gradient of `wide` (T, W), and its sum over the tokens (W,)."""
    from minbert.layer_kernels import activate_backward as kernel

    out = torch.empty_like(wide)
    inputs = array(grad), array(wide), parts.activation, array(out)
    sums = in_shares(kernel, len(wide), *inputs, sums=(wide.shape[1],))
    return out, torch.from_numpy(sums)


def attend(qkv: Tensor, parts: LayerInputs) -> tuple[Tensor, tuple[Tensor, ...], DropoutBytes]:
    """Return the context (T, H) of all heads, what its backward pass needs, and the dropout.

    `qkv` (T, 3H) are queries, keys and values. What is needed are their grids (S, A, L, D), the
    shares of the keys (S, A, L, L), and these after dropout.
    """
    from minbert import layer_kernels as kernels

    rows, heads, columns, width = parts.rows, parts.heads, parts.columns, parts.width
    places = parts.starts, parts.lengths
    query, key, value, context = (parts.grid(width) for _ in range(4))
    for number, grid in enumerate((query, key, value)):
        factor = parts.scale if number == 0 else np.float32(1)
        inputs = array(qkv), number * heads * width, factor, *places, array(grid)
        on_sequences(kernels.to_grid, rows, *inputs)
    shares = parts.grid(columns)
    torch.bmm(flat(query), flat(key).transpose(1, 2), out=flat(shares))
    drawn = DropoutBytes.draw(parts.attention_dropout, rows, heads, columns, columns)
    weights = parts.grid(columns) if drawn.dropped else shares
    scores = array(shares), parts.lengths, *drawn.values, array(shares), array(weights)
    on_sequences(kernels.softmax, rows, *scores)
    torch.bmm(flat(weights), flat(value), out=flat(context))
    joined = torch.empty(parts.tokens, heads * width, dtype=parts.dtype, device="cpu")
    joined[parts.tokens - parts.padding :] = 0
    cells = array(context), 0, np.float32(1), *places, array(joined)
    on_sequences(kernels.from_grid, rows, *cells)
    return joined, (query, key, value, shares, weights), drawn


def attend_backward(
    grad: Tensor, attended: Sequence[Tensor], drawn: DropoutBytes, parts: LayerInputs
) -> Tensor:
    """Return the gradient of queries, keys and values (T, 3H) from that of the context (T, H)."""
    from minbert import layer_kernels as kernels

    query, key, value, shares, weights = attended
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
    qkv = torch.empty(parts.tokens, 3 * width, dtype=parts.dtype, device="cpu")
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
