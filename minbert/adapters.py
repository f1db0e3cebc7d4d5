"""Adapters of a transformer: LoRA, projected attention layers, and the base class of all.

An encoder may get an adapter in a forward pass. The adapter lists, layer by layer, which values are
added where, or which layer is used instead; the encoder's own weights stay as they are.

Shapes: T tokens of the batch, H hidden width, r rank.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from common.errors import EncoderError
from minbert.attention import AttentionLayout, attend
from minbert.batching import Batch
from minbert.config import EncoderConfig
from minbert.dropout import Dropout
from minbert.linear import linear

if TYPE_CHECKING:
    from minbert.encoder import Begin, Embeddings, Encoder


@dataclass(frozen=True)
class Additions:
    """Functions whose values are added inside one layer; None adds nothing.

    `qkv`, `output`, `up` and `down` map the input (T, in) of the linear layer of this name to an
    addition to its output (T, out). `parallel` maps the layer's input (T, H) to an addition to the
    sum (T, H) before the layer's last norm.
    """

    qkv: Callable[[Tensor], Tensor] | None = None
    output: Callable[[Tensor], Tensor] | None = None
    up: Callable[[Tensor], Tensor] | None = None
    down: Callable[[Tensor], Tensor] | None = None
    parallel: Callable[[Tensor, AttentionLayout], Tensor] | None = None


PLAIN = Additions()


class EncoderAdapter(nn.Module):
    """Trained additions to the layers of an encoder, or layers in place of its own.

    `places` are the indices from 0 of the layers that differ from the encoder's.
    """

    places: tuple[int, ...] = ()

    def additions(self, count: int) -> Sequence[Additions]:
        """Return the additions to each of the first `count` layers of the encoder."""
        return [PLAIN] * count

    def in_place_of(self, layers: nn.ModuleList) -> Sequence[nn.Module]:
        """Return the layers of a forward pass: those of the adapter, else the encoder's."""
        own = self.own_layers()
        return [own.get(place, layer) for place, layer in enumerate(layers)]

    def own_layers(self) -> Mapping[int, nn.Module]:
        """Return whole layers of the adapter's own, by the index of the layer they replace."""
        return {}

    def start_from(self, encoder: Encoder) -> None:
        """Begin with the encoder's present weights, if the adapter depends on them."""

    def merge_into(self, encoder: Encoder) -> None:
        """Change the weights of an encoder so that it computes the same without the adapter.

        Raise EncoderError if this is impossible, by default.
        """
        found = type(self).__name__
        raise EncoderError(f"expected an adapter that can be merged into weights, found {found}")

    def converted(self, dtype: torch.dtype) -> EncoderAdapter:
        """Return the adapter for an encoder with weights of this type.

        By default, it is the adapter itself, which computes in the type of its inputs.
        """
        return self


class AdaptedEncoder(nn.Module):
    """A transformer with the additions of an adapter, in place of the transformer alone.

    It shares the parameters of both, and their mode, training or evaluation.
    """

    def __init__(self, encoder: Encoder, adapter: EncoderAdapter) -> None:
        super().__init__()
        self.encoder, self.adapter = encoder, adapter
        self.training = encoder.training

    @property
    def config(self) -> EncoderConfig:
        return self.encoder.config

    @property
    def embeddings(self) -> Embeddings:
        return self.encoder.embeddings

    @property
    def layers(self) -> Sequence[nn.Module]:
        """The layers of a forward pass, some of which may be the adapter's."""
        return self.adapter.in_place_of(self.encoder.layers)

    def forward(self, batch: Batch) -> Tensor:
        return self.encoder(batch, self.adapter)

    def states(self, batch: Batch, begin: Begin | None = None) -> Iterator[Tensor]:
        """Yield the hidden states (T, H) after each layer, as they are computed."""
        return self.encoder.states(batch, self.adapter, begin)

    def first_layers(self, count: int) -> AdaptedEncoder:
        """Return the encoder that ends after `count` layers, with the same adapter."""
        return AdaptedEncoder(self.encoder.first_layers(count), self.adapter)

    def merged(self) -> Encoder:
        """Return a copy of the transformer whose weights contain the adapter.

        Both compute the same, up to rounding (Hu et al., 2022, section 4.1). Raise EncoderError for
        an adapter that cannot be merged.
        """
        result = copy.deepcopy(self.encoder)
        with torch.no_grad():
            self.adapter.merge_into(result)
        return result


def product(x: Tensor, weight: Tensor) -> Tensor:
    """Compute x W^T in the type of x: x (T, in), weight (out, in) -> (T, out)."""
    return linear(x, weight.to(x.dtype), None, "mkl")


class LowRank(nn.Module):
    """Product scale B A x of two low-rank factors (Hu et al., 2022, Eq. 3): (T, in) -> (T, out).

    A (r, in) is Gaussian and B (out, r) zero, so that the product is zero before training. The
    variance of A, 1 / (3 in), is that of the authors' code.
    """

    def __init__(self, inputs: int, outputs: int, rank: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.a = nn.Parameter(torch.empty(rank, inputs).normal_(std=(3 * inputs) ** -0.5))
        self.b = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x: Tensor) -> Tensor:
        return product(product(x, self.a), self.b) * self.scale

    def delta(self) -> Tensor:
        """Return scale B A (out, in) in float64."""
        return self.scale * self.b.double() @ self.a.double()


QKV = ("query", "key", "value")


class LowRankQKV(nn.ModuleDict):
    """Low-rank products for some of query, key and value: (T, H) -> (T, 3H)."""

    def forward(self, x: Tensor) -> Tensor:
        return self.stacked({name: part(x) for name, part in self.items()}, 1)

    def delta(self) -> Tensor:
        """Return the change of the stacked weights (3H, H) in float64."""
        parts = {name: cast(LowRank, part) for name, part in self.items()}
        return self.stacked({name: part.delta() for name, part in parts.items()}, 0)

    @staticmethod
    def stacked(parts: dict[str, Tensor], axis: int) -> Tensor:
        """Concatenate the parts of query, key and value, with zeros for those without one."""
        zeros = torch.zeros_like(next(iter(parts.values())))
        return torch.cat([parts.get(name, zeros) for name in QKV], axis)


WEIGHTS = {"qkv": "attention.qkv", "output": "attention.output", "up": "up", "down": "down"}


class LowRankAdapter(EncoderAdapter):
    """LoRA (Hu et al., 2022): W x + (alpha / r) B A x in the linear layers `targets`.

    `layers` are indices from 0. A target is query, key, value, output (all of the attention), up
    or down (of the feed-forward).
    """

    def __init__(
        self,
        config: EncoderConfig,
        layers: Collection[int],
        targets: Collection[str],
        rank: int,
        alpha: float,
    ) -> None:
        super().__init__()
        self.places, scale = tuple(layers), alpha / rank
        hidden, wide = config.hidden_size, config.intermediate_size
        sizes = {"output": (hidden, hidden), "up": (hidden, wide), "down": (wide, hidden)}
        self.layers = nn.ModuleDict()
        for layer in layers:
            parts = nn.ModuleDict()
            chosen = [name for name in QKV if name in targets]
            if chosen:
                parts["qkv"] = LowRankQKV(
                    {name: LowRank(hidden, hidden, rank, scale) for name in chosen}
                )
            for name, size in sizes.items():
                if name in targets:
                    parts[name] = LowRank(*size, rank, scale)
            self.layers[str(layer)] = parts

    def by_layer(self) -> Iterator[tuple[int, dict[str, LowRank | LowRankQKV]]]:
        """Yield the index of each adapted layer, and its parts by the name of the linear layer."""
        for layer, parts in self.layers.items():
            assert isinstance(parts, nn.ModuleDict)
            yield int(layer), {n: cast(LowRank | LowRankQKV, part) for n, part in parts.items()}

    def additions(self, count: int) -> list[Additions]:
        own = {layer: Additions(**parts) for layer, parts in self.by_layer()}
        return [own.get(layer, PLAIN) for layer in range(count)]

    def merge_into(self, encoder: Encoder) -> None:
        for layer, parts in self.by_layer():
            if layer < len(encoder.layers):  # else an encoder with its first layers only
                for name, part in parts.items():
                    weight = encoder.get_parameter(f"layers.{layer}.{WEIGHTS[name]}.weight")
                    weight.copy_(weight.double() + part.delta())


class ProjectedAttention(EncoderAdapter):
    """Projected attention layers (Stickland and Murray, 2019, section 3): V_D MH(V_E h).

    h (T, H) is the input of a layer, and MH multi-head attention of width r without an output
    matrix, with the encoder's number of heads. The result is added before the last norm of the
    layer. With `shared`, the layers share the projections V_E and V_D, as in the paper.

    V_D is zero before training, so that the encoder starts unchanged; the authors draw it like the
    other weights. Their code also applies a GELU to the result, which is not in this formula.
    """

    def __init__(
        self, config: EncoderConfig, layers: Collection[int], rank: int, shared: bool
    ) -> None:
        super().__init__()
        self.places, self.shared = tuple(layers), shared
        names = [str(layer) for layer in layers]
        places, width = (["shared"] if shared else names), config.hidden_size
        # Drawn with BERT's initialisation.
        self.down = nn.ParameterDict(
            {n: torch.empty(rank, width).normal_(std=0.02) for n in places}
        )
        self.up = nn.ParameterDict({n: torch.zeros(width, rank) for n in places})
        self.qkv = nn.ParameterDict(
            {n: torch.empty(3 * rank, rank).normal_(std=0.02) for n in names}
        )
        self.dropout = Dropout(config.attention_dropout)

    def additions(self, count: int) -> list[Additions]:
        own = {int(n): Additions(parallel=partial(self.parallel, n)) for n in self.qkv}
        return [own.get(layer, PLAIN) for layer in range(count)]

    def parallel(self, layer: str, hidden: Tensor, layout: AttentionLayout) -> Tensor:
        place = "shared" if self.shared else layer
        qkv = product(product(hidden, self.down[place]), self.qkv[layer])  # (T, 3r)
        return product(attend(qkv, layout, self.dropout), self.up[place])  # (T, H)
