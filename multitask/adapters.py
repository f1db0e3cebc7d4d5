"""Adapters: low-rank parts of the shared encoder that belong to single tasks.

The computations are in `minbert/adapters.py`. No torch is imported here at module level.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from common.errors import RunError, UserError
from common.settings import Count, Positive, Settings, setting

if TYPE_CHECKING:
    from minbert.adapters import EncoderAdapter
    from minbert.config import EncoderConfig


class Adapter(Settings, prefix="adapter_"):
    """Trained parts of the encoder of which each task has its own, beside the shared weights.

    The parts of a task follow only its own losses, as heads do; a combiner of gradients does not
    see them. Flags and JSON have `adapter_` before each setting.
    """

    layers: tuple[Count, ...] = setting(
        (), help="numbers of the layers with adapters, 1 next to the embeddings (default: all)"
    )
    top_layers: Count | None = setting(
        None, help="adapters only in the last N layers (default: in all)"
    )
    lr: Positive | None = setting(
        None, metavar="RATE", help="peak learning rate of the adapters (default: that of the heads)"
    )

    def faults(self) -> Iterator[str]:
        if self.layers and self.top_layers:
            yield "adapter_layers and adapter_top_layers: expected at most one of them"
        for layer in self.layers:
            if self.layers.count(layer) > 1:
                yield f"adapter_layers: expected each layer once, found {layer} twice"

    def build(self, config: EncoderConfig) -> EncoderAdapter:
        """Return the adapter of one task, for an encoder of this configuration.

        It starts without an effect on the encoder. Its random weights are drawn from PyTorch's
        generator. Raise RunError if the settings do not fit the encoder.
        """
        raise UserError(f"adapter {self.name}: expected build")

    def places(self, config: EncoderConfig) -> list[int]:
        """Return the indices from 0 of the layers with adapters."""
        count = config.num_layers
        key, most = "layers", max(self.layers, default=0)
        if self.top_layers is not None:
            key, most = "top-layers", self.top_layers
        if most > count:
            expected = f"at most {count}, the number of the encoder's layers"
            raise RunError(f"--adapter-{key}: expected {expected}, found {most}")
        if self.layers:
            return sorted(layer - 1 for layer in self.layers)
        return list(range(count - (self.top_layers or count), count))

    def fitting_rank(self, rank: int, config: EncoderConfig) -> int:
        """Return the rank; raise RunError if it exceeds the width of the encoder."""
        if rank > config.hidden_size:
            expected = f"at most {config.hidden_size}, the width of the encoder"
            raise RunError(f"--adapter-rank: expected {expected}, found {rank}")
        return rank


Target = Literal["query", "key", "value", "output", "up", "down"]


class LoRA(Adapter, name="lora"):
    """LoRA: W x + (alpha / rank) B A x in linear layers of the encoder (Hu et al., 2022).

    B starts at zero. After training, the product is merged into W by `--mode export --task`.
    """

    rank: Count = setting(8, help="rank of A and B", source="Hu et al., 2022, Table 9")
    alpha: Positive = setting(
        8.0, help="factor of the product, divided by the rank", source="Hu et al., 2022, Table 9"
    )
    targets: tuple[Target, ...] = setting(
        ("query", "value"),
        help="linear layers: query, key, value and output of the attention, up and down of the "
        "feed-forward",
        source="Hu et al., 2022, section 7.1",
    )
    lr: Positive | None = setting(
        5e-4,
        metavar="RATE",
        help="peak learning rate of the adapters",
        source="Hu et al., 2022, Table 9",
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if not self.targets:
            yield "adapter_targets: expected one or more, found none"
        for target in self.targets:
            if self.targets.count(target) > 1:
                yield f"adapter_targets: expected each once, found {target} twice"

    def build(self, config: EncoderConfig) -> EncoderAdapter:
        from minbert.adapters import LowRankAdapter

        rank = self.fitting_rank(self.rank, config)
        return LowRankAdapter(config, self.places(config), self.targets, rank, self.alpha)


PAPER_RANK, PAPER_WIDTH = 204, 768


class PAL(Adapter, name="pal"):
    """Projected attention layers in parallel to the encoder's (Stickland and Murray, 2019).

    The hidden states are projected to a small width, attend to each other there, and are projected
    back. The projections are those of a task in all layers, or with `--adapter-own-projections` of
    one layer. They cannot be merged into the encoder.
    """

    rank: Count | None = setting(
        None,
        help="width of the small attention, a multiple of the encoder's attention heads (default: "
        "in proportion to the 204 of 768 in Stickland and Murray, 2019)",
    )
    own_projections: bool = setting(False, help="projections for each layer, not for all together")

    def build(self, config: EncoderConfig) -> EncoderAdapter:
        from minbert.adapters import ProjectedAttention

        heads, width = config.num_heads, config.hidden_size
        share = PAPER_RANK * width / PAPER_WIDTH
        rank = self.rank or heads * max(1, round(share / heads))
        if rank % heads:
            raise RunError(
                f"--adapter-rank: expected a multiple of {heads}, the number of attention heads, "
                f"found {rank}"
            )
        shared = not self.own_projections
        rank = self.fitting_rank(rank, config)
        return ProjectedAttention(config, self.places(config), rank, shared)
