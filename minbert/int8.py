"""Encoding with int8 products: a copy of the encoder whose linear layers multiply integers.

Weights have one scale per output channel, and activations one per token (dynamic quantisation, as
in ZeroQuant, Yao et al., 2022, section 4). The sums are exact in int32. Everything else is float32:
layer norms, attention, and residual connections.

A few channels of the states are much larger than the others, which would share few codes.
Before the products for queries, keys and values and the first feed-forward product, each channel is
divided by a number that multiplies its weights (SmoothQuant, Xiao et al., 2023, Eq. 4). The inputs
of the second feed-forward product are nearly all positive and use all codes for positive numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from minbert.attention import AttentionLayout
from minbert.batching import Batch
from minbert.encoder import Encoder, Layer
from minbert.inference_layer import attend
from minbert.linear import Linear

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Int8Product:
    """A linear layer with int8 weights.

    `codes` (in, out) int8; `weights` (out,) scales of the output channels; `bias` (out,); `offsets`
    (out,) int32 to be added to the sums; `factors` (in,) by which the inputs are multiplied before
    they are quantised.
    """

    codes: Tensor
    weights: Floats
    bias: Floats
    offsets: NDArray[np.int32]
    factors: Floats

    def __call__(self, codes: Tensor, sums: Tensor) -> NDArray[np.int32]:
        """Return the integer sums (T, out) for input codes (T, in), written to `sums`."""
        return torch._int_mm(codes, self.codes, out=sums).numpy()


STRENGTH = 0.5  # alpha in Eq. 4 of SmoothQuant
SMALLEST = 1e-5  # of magnitudes, whose quotients are taken


def quantized(layer: Linear, magnitudes: Tensor | None = None, shifted: float = 0.0) -> Int8Product:
    """Quantise a linear layer, with symmetric codes from -127 to 127.

    Args:
        magnitudes: largest absolute inputs (in,), for SmoothQuant; None to leave inputs as they
            are.
        shifted: what the inputs are shifted by (`int8_kernels.SHIFT`); their codes then are 128 too
            low.
    """
    weight, bias = layer.weight.detach().float(), layer.bias.detach().float().clone()
    divisors = torch.ones(weight.shape[1])
    if magnitudes is not None:
        largest = weight.abs().amax(0).clamp_min(SMALLEST)
        divisors = magnitudes.clamp_min(SMALLEST) ** STRENGTH / largest ** (1 - STRENGTH)
        weight = weight * divisors
    scales = weight.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / 127
    codes = (weight / scales[:, None]).round().to(torch.int8)
    sums = codes.sum(1, dtype=torch.int32)
    if shifted:
        bias -= shifted * sums * scales
    offsets = 128 * sums if shifted else torch.zeros_like(sums)
    numpy = (tensor.numpy() for tensor in (scales, bias, offsets, 1 / divisors))
    return Int8Product(codes.t(), *numpy)


Magnitudes = tuple[Tensor, Tensor]


def input_magnitudes(encoder: Encoder, batch: Batch) -> list[Magnitudes]:
    """Return, for each layer, the largest absolute inputs (H,) of its products `qkv` and `up`."""
    layers = [layer for layer in encoder.layers if isinstance(layer, Layer)]
    products = [product for layer in layers for product in (layer.attention.qkv, layer.up)]
    found = [torch.zeros(encoder.config.hidden_size) for _ in products]

    def note(place: int) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            torch.maximum(found[place], inputs[0].abs().amax(0), out=found[place])

        return hook

    hooks = [one.register_forward_pre_hook(note(place)) for place, one in enumerate(products)]
    try:
        with torch.no_grad():
            encoder(batch)
    finally:
        for one in hooks:
            one.remove()
    return list(zip(found[::2], found[1::2], strict=True))


class Buffers:
    """Memory and layout of one batch, which all layers use. Shapes as in `int8_kernels.py`."""

    def __init__(self, encoder: Encoder, batch: Batch) -> None:
        config = encoder.config
        hidden, wide = config.hidden_size, config.intermediate_size
        tokens = batch.tokens
        self.layout = AttentionLayout(batch, config.num_heads)
        self.codes = torch.empty(tokens, hidden, dtype=torch.int8)
        self.wide_codes = torch.empty(tokens, wide, dtype=torch.int8)
        self.scales = np.empty(tokens, np.float32)
        self.qkv_sums = torch.empty(tokens, 3 * hidden, dtype=torch.int32)
        self.qkv = torch.empty(tokens, 3 * hidden)
        self.sums = torch.empty(tokens, hidden, dtype=torch.int32)
        self.wide_sums = torch.empty(tokens, wide, dtype=torch.int32)


class Int8Layer:
    """A layer of the encoder with int8 products."""

    def __init__(self, layer: Layer, activation: int, inputs: Magnitudes) -> None:
        from minbert.int8_kernels import SHIFT

        self.activation = activation
        self.qkv = quantized(layer.attention.qkv, inputs[0])
        self.output, self.up = quantized(layer.attention.output), quantized(layer.up, inputs[1])
        self.down = quantized(layer.down, shifted=float(SHIFT))
        self.norms = [
            (norm.weight.detach().numpy(), norm.bias.detach().numpy(), np.float32(norm.eps))
            for norm in (layer.attention_norm, layer.output_norm)
        ]

    def __call__(self, states: Floats, buffers: Buffers, factors: Floats) -> None:
        """Replace states (T, H), and their codes and scales in `buffers`, by those of the layer.

        `factors` (H,) are those of the next product.
        """
        from minbert import int8_kernels as kernels

        b, qkv, up = buffers, self.qkv, self.up
        sums = qkv(b.codes, b.qkv_sums)
        kernels.scaled(sums, b.scales, qkv.weights, qkv.bias, b.qkv.numpy())
        context = attend(b.qkv, b.layout).numpy()
        kernels.quantize(context, self.output.factors, b.codes.numpy(), b.scales)
        sums = self.output(b.codes, b.sums)
        add_and_norm(sums, self.output, states, self.norms[0], up.factors, b)
        sums, codes = up(b.codes, b.wide_sums), b.wide_codes.numpy()
        kernels.activate(sums, b.scales, up.weights, up.bias, self.activation, codes, b.scales)
        sums = self.down(b.wide_codes, b.sums)
        add_and_norm(sums, self.down, states, self.norms[1], factors, b)


def add_and_norm(
    sums: NDArray[np.int32],
    product: Int8Product,
    states: Floats,
    norm: tuple[Floats, Floats, np.float32],
    factors: Floats,
    buffers: Buffers,
) -> None:
    """Add a product to the states (T, H), normalise and quantise them."""
    from minbert import int8_kernels as kernels

    scales, codes = buffers.scales, buffers.codes.numpy()
    parts = product.weights, product.bias, product.offsets
    kernels.add_and_norm(sums, scales, *parts, states, *norm, factors, codes, scales)


def int8_layers(encoder: Encoder, inputs: Sequence[Magnitudes]) -> list[Int8Layer]:
    """Quantise all layers of an encoder in float32, whose `input_magnitudes` are `inputs`."""
    from minbert.vector_math import ACTIVATIONS

    activation = ACTIVATIONS[encoder.config.activation]
    layers = [layer for layer in encoder.layers if isinstance(layer, Layer)]
    return [
        Int8Layer(layer, activation, largest) for layer, largest in zip(layers, inputs, strict=True)
    ]


class Int8Encoder(nn.Module):
    """Encoder for inference on a CPU: a batch of T tokens -> states (T, H) in float32.

    `encoder` in float32 and in evaluation mode gives the embeddings of tokens. Its layers are
    replaced by `layers`, of which some may have float products.
    """

    def __init__(self, encoder: Encoder, layers: Sequence[Int8Layer | nn.Module]) -> None:
        super().__init__()
        self.encoder, self.all_layers = encoder, tuple(layers)
        ones = np.ones(encoder.config.hidden_size, np.float32)
        factors = (one.qkv.factors if isinstance(one, Int8Layer) else ones for one in layers)
        self.factors = [*factors, ones]
        self.eval()

    def forward(self, batch: Batch) -> Tensor:
        from minbert import int8_kernels as kernels

        self.encoder.begin_pass(batch)
        hidden = self.encoder.embeddings(batch).contiguous()  # (T, H)
        states, buffers = hidden.numpy(), Buffers(self.encoder, batch)
        codes = buffers.codes.numpy()
        kernels.quantize(states, self.factors[0], codes, buffers.scales)
        for layer, factors in zip(self.all_layers, self.factors[1:], strict=True):
            if isinstance(layer, Int8Layer):
                layer(states, buffers, factors)
            else:
                assert isinstance(layer, Layer)
                hidden.copy_(layer(hidden.to(layer.up.weight.dtype), buffers.layout))
                kernels.quantize(states, factors, codes, buffers.scales)
        return hidden
