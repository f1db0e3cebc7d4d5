"""Upper layers of single tasks in place of shared ones, and the shared layers computed once.

Shapes: T tokens of the batch, H hidden width.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import cast

import torch
from torch import Tensor, nn

from minbert.batching import Batch
from minbert.bilstm import BiLSTM
from minbert.encoder import Begin, Encoder


def copied_layers(encoder: Encoder | BiLSTM, count: int) -> nn.ModuleList:
    """Return copies of the last `count` layers of an encoder, from the lowest to the last."""
    return copy.deepcopy(encoder.layers[len(encoder.layers) - count :])


def branch(encoder: Encoder, layers: nn.ModuleList) -> Encoder:
    """Return an encoder with these last layers, which shares everything else with `encoder`.

    If the weights of `encoder` have another type, the layers are copied in that type.
    """
    dtype = encoder.embeddings.word.weight.dtype
    if next(layers.parameters()).dtype != dtype:
        layers = copy.deepcopy(layers).to(dtype).requires_grad_(False).eval()
    result = copy.copy(encoder)
    result._modules = dict(encoder._modules)  # the copy would have the same dictionary
    result.layers = nn.ModuleList([*encoder.layers[: -len(layers)], *layers])
    return result


class BranchedEncoder(nn.Module):
    """Several encoders with the same first layers, which are computed once.

    The states are those of all n encoders beside each other (T, n H). Each encoder computes as it
    does alone. Raise ValueError if the encoders share no layer.
    """

    def __init__(self, encoders: Sequence[Encoder]) -> None:
        super().__init__()
        self.encoders, self.shared = nn.ModuleList(encoders), shared_layers(encoders)
        if self.shared == 0:
            raise ValueError("encoders: expected the same first layer in all, found none")
        self.training = encoders[0].training

    def forward(self, batch: Batch) -> Tensor:
        first, *others = cast(Iterable[Encoder], self.encoders)
        for layers, hidden in enumerate(first.states(batch), 1):
            if layers == self.shared:
                begin = Begin(layers, hidden)
                branches = [last(one.states(batch, begin), hidden) for one in others]
        return torch.cat([hidden, *branches], dim=1)


def shared_layers(encoders: Sequence[Encoder]) -> int:
    """Return the number of first layers that all encoders have in common."""
    places = zip(*(one.layers for one in encoders), strict=True)
    return sum(1 for _ in takewhile(lambda layers: len({*map(id, layers)}) == 1, places))


def last(states: Iterable[Tensor], begin: Tensor) -> Tensor:
    """Return the last of the states, or those at the beginning if no layer is left."""
    found = begin
    for hidden in states:
        found = hidden
    return found
