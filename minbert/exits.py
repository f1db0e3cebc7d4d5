"""Smaller embeddings: states after earlier layers, and fewer dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from common.errors import EncoderError
from minbert.batching import Batch
from minbert.bilstm import BiLSTM
from minbert.encoder import Encoder
from minbert.folder import AnyEncoder
from minbert.sizes import check_size


def states_after(encoder: nn.Module, batch: Batch, exits: Sequence[int]) -> list[Tensor]:
    """Return float32 states (T, H) after each of the layers `exits`, from 1, in one pass.

    Without exits they are those of the last layer.
    """
    if not exits:
        return [encoder(batch).float()]
    assert isinstance(encoder, Encoder), "exits are those of a transformer"
    every = enumerate(encoder.states(batch), 1)
    found = {layer: hidden.float() for layer, hidden in every if layer in exits}
    return [found[layer] for layer in exits]


def first_layers(encoder: AnyEncoder, layers: int) -> AnyEncoder:
    """Return the encoder that ends after some layers; raise EncoderError if it has fewer."""
    if isinstance(encoder, BiLSTM):
        raise EncoderError("layers: expected a transformer, found a BiLSTM")
    most = encoder.config.num_layers
    return encoder.first_layers(check_size("layers", layers, most, "layers of the encoder"))


def first_dimensions(embedding: Tensor, width: int) -> Tensor:
    """Return embeddings (B, H) whose dimensions from `width` on are zero."""
    more = embedding.shape[1] - width
    return F.pad(embedding[:, :width], (0, more)) if more else embedding
