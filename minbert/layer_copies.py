"""Upper layers of single tasks in place of shared ones."""

from __future__ import annotations

import copy

from torch import nn

from minbert.bilstm import BiLSTM
from minbert.encoder import Encoder


def copied_layers(encoder: Encoder | BiLSTM, count: int) -> nn.ModuleList:
    """Return copies of the last `count` layers of an encoder, from the lowest to the last."""
    return copy.deepcopy(encoder.layers[len(encoder.layers) - count :])


def branch(encoder: Encoder, layers: nn.ModuleList) -> Encoder:
    """Return an encoder with these last layers, which shares everything else with `encoder`."""
    result = copy.copy(encoder)
    result._modules = dict(encoder._modules)  # the copy would have the same dictionary
    result.layers = nn.ModuleList([*encoder.layers[: -len(layers)], *layers])
    return result
