"""Layers of single tasks in place of shared ones, and the shared layers below computed once.

Shapes: T tokens of the batch, H hidden width.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from minbert.adapters import AdaptedEncoder, EncoderAdapter
from minbert.batching import Batch
from minbert.config import EncoderConfig
from minbert.dropout import DropoutStream
from minbert.encoder import Begin, Encoder, Layer

LayeredEncoder = Encoder | AdaptedEncoder


class LayerCopies(EncoderAdapter):
    """Complete layers of one task, which replace those of the encoder at `places`, from 0."""

    def __init__(self, config: EncoderConfig, places: Collection[int]) -> None:
        super().__init__()
        self.places = tuple(places)
        self.layers = nn.ModuleDict({str(n): Layer(config, DropoutStream()) for n in places})

    def own_layers(self) -> dict[int, nn.Module]:
        return {int(place): layer for place, layer in self.layers.items()}

    def start_from(self, encoder: Encoder) -> None:
        for name in self.layers:
            # A copy also has the kernel of the linear layers; its dropout keeps its own stream.
            self.layers[name] = copy.deepcopy(encoder.layers[int(name)])

    def merge_into(self, encoder: Encoder) -> None:
        for name, layer in self.layers.items():
            if int(name) < len(encoder.layers):  # else an encoder with its first layers only
                encoder.layers[int(name)].load_state_dict(layer.state_dict())

    def converted(self, dtype: torch.dtype) -> EncoderAdapter:
        return copy.deepcopy(self).to(dtype).requires_grad_(False).eval()


class BranchedEncoder(nn.Module):
    """Several adapters of one encoder whose first layers are the encoder's: computed once.

    The states are those of all n encoders beside each other (T, n H). Each encoder computes as it
    does alone. Raise ValueError if an adapter changes the first layer.
    """

    def __init__(self, encoders: Sequence[LayeredEncoder]) -> None:
        super().__init__()
        self.encoders, self.shared = nn.ModuleList(encoders), shared_layers(encoders)
        if self.shared == 0:
            raise ValueError("encoders: expected the same first layer in all, found none")
        self.training = encoders[0].training

    def forward(self, batch: Batch) -> Tensor:
        first, *others = cast(Iterable[LayeredEncoder], self.encoders)
        for layers, hidden in enumerate(first.states(batch), 1):
            if layers == self.shared:
                begin = Begin(layers, hidden)
                branches = [last(one.states(batch, begin=begin), hidden) for one in others]
        return torch.cat([hidden, *branches], dim=1)


def shared_layers(encoders: Sequence[LayeredEncoder]) -> int:
    """Return the number of first layers in which no adapter changes anything.

    0 if two encoders without an adapter differ: an adapter may be merged into their weights.
    """
    if len({id(one) for one in encoders if isinstance(one, Encoder)}) > 1:
        return 0
    count = len(encoders[0].layers)
    adapters = [one.adapter for one in encoders if isinstance(one, AdaptedEncoder)]
    return min([count, *(min(one.places) for one in adapters if one.places)])


def last(states: Iterable[Tensor], begin: Tensor) -> Tensor:
    """Return the last of the states, or those at the beginning if no layer is left."""
    found = begin
    for hidden in states:
        found = hidden
    return found
