"""Precisions: their choice, autocast in training, converted copies in inference."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from common.errors import EncoderError
from minbert.encoder import Encoder
from minbert.folder import AnyEncoder
from minbert.linear import has_bfloat16


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
    state = {name: value.detach().bfloat16() for name, value in encoder.state_dict().items()}
    with torch.device("meta"):
        half = Encoder(encoder.config)
    half.load_state_dict(state, assign=True)
    return half.requires_grad_(False).eval()


def weights_state(encoder: nn.Module) -> tuple[object, ...]:
    """Return device and checksum of each weight, on which a copy of the encoder depends."""
    tensors = [(name, p.detach()) for name, p in encoder.named_parameters()]
    return tuple((name, str(one.device), tensor_checksum(one)) for name, one in tensors)


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
