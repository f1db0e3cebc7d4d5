"""bfloat16: autocast in training, converted weights in inference."""

from __future__ import annotations

import torch

from common.errors import EncoderError
from minbert.adapters import AdaptedEncoder
from minbert.encoder import Encoder
from minbert.folder import (
    AnyEncoder,
)


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Autocast matrix products to bfloat16 for `bf16` only; weights stay float32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def in_bfloat16(encoder: AnyEncoder) -> Encoder | AdaptedEncoder:
    """Copy the encoder with all weights in bfloat16; raise EncoderError for a BiLSTM.

    An adapter is not copied: it computes in the type of its inputs.
    """
    if isinstance(encoder, AdaptedEncoder):
        half = in_bfloat16(encoder.encoder)
        assert isinstance(half, Encoder)
        return AdaptedEncoder(half, encoder.adapter)
    if not isinstance(encoder, Encoder):
        raise EncoderError("bf16: expected a transformer, found a BiLSTM; use fp32 for it")
    state = {name: value.detach().bfloat16() for name, value in encoder.state_dict().items()}
    with torch.device("meta"):
        half = Encoder(encoder.config)
    half.load_state_dict(state, assign=True)
    if encoder.compiled:
        half.compile_layers(encoder.compiled)
    return half.eval()
