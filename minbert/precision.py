"""Precisions: their choice, autocast in training, converted or quantised copies in inference."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from common.errors import EncoderError
from minbert.batching import Embed, TokenLists, pack
from minbert.encoder import Encoder
from minbert.folder import AnyEncoder
from minbert.linear import Linear, has_bfloat16

Tokenize = Callable[[list[str]], TokenLists]


class PrecisionChoice(NamedTuple):
    """A precision, never `auto`, and why it was chosen."""

    precision: str
    reason: str

    def __str__(self) -> str:
        return f"precision: {self.precision} ({self.reason})"


def choose_precision(requested: str, device: torch.device, bilstm: bool) -> PrecisionChoice:
    """Return the requested precision; for `auto`, bf16 where the device has bfloat16, else fp32.

    A BiLSTM, which has no bf16, gets fp32.
    """
    if requested != "auto":
        return PrecisionChoice(requested, "as requested")
    if bilstm:
        return PrecisionChoice("fp32", "a BiLSTM has no bf16")
    able, reason = bfloat16_support(device)
    return PrecisionChoice("bf16" if able else "fp32", reason)


def bfloat16_support(device: torch.device) -> tuple[bool, str]:
    """Return whether a device has bfloat16 instructions, and a clause that says so.

    NVIDIA's GPUs have them since Ampere (8.0); AMD's have them. Others emulate them, which is
    slower than float32.
    """
    if device.type == "cuda":
        hip = torch.version.hip is not None
        able, what = hip or torch.cuda.get_device_capability(device) >= (8, 0), "GPU"
    else:
        able, what = has_bfloat16(), "CPU"
    return able, f"this {what} has {'' if able else 'no '}bfloat16 instructions"


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Autocast matrix products to bfloat16 for `bf16` only; weights stay float32.

    Converted weights are not kept: inside another autocast, even one that is not enabled, PyTorch
    would keep them after the weights have changed.
    """
    used = precision == "bf16"
    return torch.autocast(device.type, torch.bfloat16, enabled=used, cache_enabled=False)


def in_bfloat16(encoder: AnyEncoder) -> Encoder:
    """Copy the encoder with all weights in bfloat16; raise EncoderError for a BiLSTM."""
    if not isinstance(encoder, Encoder):
        raise EncoderError("bf16: expected a transformer, found a BiLSTM; use fp32 for it")
    half = frozen_copy(encoder, torch.bfloat16)
    if encoder.compiled:
        half.compile_layers(encoder.compiled)
    return half


def frozen_copy(encoder: Encoder, dtype: torch.dtype) -> Encoder:
    """Copy the encoder in evaluation mode; weights that already have `dtype` are shared."""
    state = {name: value.detach().to(dtype) for name, value in encoder.state_dict().items()}
    with torch.device("meta"):
        copy = Encoder(encoder.config)
    copy.load_state_dict(state, assign=True)
    copy.use_linear(next(m.kernel for m in encoder.modules() if isinstance(m, Linear)))
    return copy.requires_grad_(False).eval()


def in_int8(encoder: AnyEncoder, tokenize: Tokenize, embed: Embed, pooling: str) -> nn.Module:
    """Copy the encoder with int8 products, except in layers that these would hurt.

    Without int8 instructions the copy is the best float one, with a printed note. Some sentences,
    which `tokenize` and `embed` turn into embeddings, decide; `pooling` is that of `embed`. Raises
    EncoderError for a BiLSTM, and for an encoder on a GPU.
    """
    from minbert.int8 import input_magnitudes, int8_layers
    from minbert.int8_layers import SENTENCES, choose_layers
    from minbert.int8_products import has_int8

    if not isinstance(encoder, Encoder):
        raise EncoderError("int8: expected a transformer, found a BiLSTM; use fp32 for it")
    if (device := encoder.embeddings.word.weight.device).type != "cpu":
        raise EncoderError(f"int8: expected an encoder on the CPU, found it on {device}; use bf16")
    encoder = frozen_copy(encoder, torch.float32)
    floats = frozen_copy(encoder, torch.bfloat16) if has_bfloat16() else encoder
    if not has_int8():
        used = "bf16" if has_bfloat16() else "fp32"
        line = f"note: int8 products are not faster on this CPU; {used} is used instead"
        print(line, file=sys.stderr, flush=True)
        return floats
    tokens = tokenize(SENTENCES.read_text("utf-8").splitlines())
    inputs = input_magnitudes(encoder, pack([tokens], np.arange(len(tokens))))
    quantised = int8_layers(encoder, inputs)
    return choose_layers(encoder, floats, quantised, tokens, embed, pooling)


def weights_state(encoder: nn.Module) -> tuple[object, ...]:
    """Return device and checksum of each weight, and what else a copy of the encoder depends on."""
    settings = [(m.kernel,) for m in encoder.modules() if isinstance(m, Linear)][:1]
    compiled = [getattr(m, "compiled", None) is not None for m in encoder.modules()]
    tensors = [(name, p.detach()) for name, p in encoder.named_parameters()]
    weights = [(name, str(tensor.device), tensor_checksum(tensor)) for name, tensor in tensors]
    return *settings, *compiled, *weights


def tensor_checksum(tensor: Tensor) -> int:
    """Return a number that changes with a number of a tensor.

    The bits of the numbers are added as integers, each row with a factor of its own, so that an
    exchange of rows changes it, too. Changes of several numbers can cancel each other, such as new
    signs of a whole row or an exchange of columns; training makes no such changes. It is much
    faster than a cryptographic hash, and with integers of two numbers each, ten times as fast as
    with those of one, which would have to be converted.
    """
    if not tensor.numel():
        return 0
    rows = torch.atleast_1d(tensor.float())
    bits = rows.contiguous().view(torch.int32).view(len(rows), -1)
    if bits.shape[1] % 2 == 0:
        bits = bits.view(torch.int64)
    factors = torch.arange(1, 2 * len(bits), 2, device=bits.device)
    return int((bits.sum(1) * factors).sum())
