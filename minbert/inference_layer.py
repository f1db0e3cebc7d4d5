"""A layer of the encoder on a CPU for inference: large products and two kernels beside them.

It computes what `Layer` in minbert/encoder.py does in evaluation mode, without a graph, and with
fewer passes over memory. The kernels are those of training and `minbert/attention_kernel.py`.

Shapes: T tokens, S sequences, H hidden width, W width of the feed-forward part.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from minbert.attention import SDPA_TOKENS, AttentionLayout, sdpa_attention
from minbert.fused_layer import activate, add_and_norm
from minbert.kernel_calls import DropoutBytes, array, on_sequences
from minbert.linear import Linear, activated_product, product

if TYPE_CHECKING:
    from minbert.encoder import Layer


def inference_layer(
    layer: Layer, hidden: Tensor, layout: AttentionLayout, dtype: torch.dtype
) -> Tensor:
    """Apply a layer to states (T, H), with products in `dtype`; return states in `dtype`."""
    kernel = layer.up.kernel

    def weights(linear: Linear) -> tuple[Tensor, Tensor]:
        return linear.weight.to(dtype), linear.bias.to(dtype)

    def normed(norm: nn.LayerNorm, states: Tensor, added: Tensor) -> Tensor:
        drawn = DropoutBytes.draw(layer.dropout, *states.shape)  # none
        gain, shift, eps = norm.weight.float(), norm.bias.float(), np.float32(norm.eps)
        return add_and_norm(states, added, drawn, gain, shift, eps, keeps=False)[0]

    hidden = hidden.to(dtype)
    qkv = product(hidden, *weights(layer.attention.qkv), kernel)  # (T, 3H)
    added = product(attend(qkv, layout), *weights(layer.attention.output), kernel)
    middle = normed(layer.attention_norm, hidden, added)  # (T, H)
    wide = activated_product(middle, *weights(layer.up), kernel, layer.activation_name)  # (T, W)
    if wide is None:
        from minbert.vector_math import ACTIVATIONS

        wide = product(middle, *weights(layer.up), kernel)
        activate(wide, ACTIVATIONS[layer.activation_name], wide)
    return normed(layer.output_norm, middle, product(wide, *weights(layer.down), kernel))


def attend(qkv: Tensor, layout: AttentionLayout) -> Tensor:
    """Return the context (T, H) of queries, keys and values (T, 3H)."""
    if layout.columns > SDPA_TOKENS:
        return sdpa_attention(qkv, layout)
    from minbert.attention_kernel import attend as kernel

    batch, hidden = layout.batch, qkv.shape[1] // 3
    context = qkv.new_empty(layout.tokens, hidden)
    context[batch.tokens :] = 0
    scale = np.float32(1 / math.sqrt(hidden // layout.heads))
    places = batch.starts.numpy(), batch.lengths.numpy()
    inputs = array(qkv), *places, layout.heads, scale, array(context)
    on_sequences(kernel, layout.rows, *inputs)
    return context
