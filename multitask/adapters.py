"""Adapters: parts of the shared encoder that belong to single tasks.

The computations are in `minbert/adapters.py` and `minbert/layer_copies.py`. No torch is imported
here at module level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from common.errors import SettingsError, UserError
from common.repeats import repeated
from common.settings import Count, Name, Positive, Settings, setting

if TYPE_CHECKING:
    from minbert.adapters import EncoderAdapter
    from minbert.config import EncoderConfig


# The settings for which `--branch` is short, with their defaults.
BRANCH: Mapping[str, Any] = {
    "adapter_layers": (),
    "adapter_top_layers": None,
    "adapter_conflict_layers": None,
}


class Adapter(Settings, prefix="adapter_"):
    """Trained parts of the encoder of which each task has its own, beside the shared weights.

    The parts of a task follow only its own losses, as heads do; a combiner of gradients does not
    see them. Flags and JSON have `adapter_` before each setting. `rate` is the optimiser's setting
    that `lr` replaces.
    """

    rate: ClassVar[str] = "head_lr"
    only: tuple[Name, ...] = setting((), help="tasks with adapters (default: all of the run)")
    layers: tuple[Count, ...] = setting(
        (), help="numbers of the layers with adapters, 1 next to the embeddings (default: all)"
    )
    top_layers: Count | None = setting(
        None, help="adapters only in the last N layers (default: in all)"
    )
    conflict_layers: Literal["auto"] | Count | None = setting(
        None,
        metavar="N",
        help="adapters only in the N layers in which the gradients of these tasks and the others "
        "conflict most, by the steps of the run of --init; auto: in the layers that conflict "
        "significantly, up to 1.3 times the parameters",
    )
    lr: Positive | None = setting(
        None, metavar="RATE", help="peak learning rate of the adapters (default: that of the heads)"
    )

    def faults(self) -> Iterator[str]:
        keys = [key for key in ("layers", "top_layers", "conflict_layers") if getattr(self, key)]
        if len(keys) > 1:
            yield f"adapter_{keys[0]} and adapter_{keys[1]}: expected at most one of them"
        for key, what in (("layers", "layer"), ("only", "task")):
            for one in repeated(getattr(self, key)):
                yield f"adapter_{key}: expected each {what} once, found {one} twice"

    def build(self, config: EncoderConfig) -> EncoderAdapter:
        """Return the adapter of one task, for an encoder of this configuration.

        It starts without an effect on the encoder, some kinds only after `start_from`. Its random
        weights are drawn from PyTorch's generator. Raise SettingsError if they do not fit.
        """
        raise UserError(f"adapter {self.name}: expected build")

    def places(self, config: EncoderConfig) -> list[int]:
        """Return the indices from 0 of the layers with adapters.

        Raise ValueError before `with_conflict_layers` has chosen them.
        """
        if self.conflict_layers is not None:
            raise ValueError("adapter: expected the layers of conflict_layers, found no choice yet")
        count = config.num_layers
        key, most = "layers", max(self.layers, default=0)
        if self.top_layers is not None:
            key, most = "top_layers", self.top_layers
        if most > count:
            expected = f"at most {count}, the number of the encoder's layers"
            raise SettingsError(f"adapter_{key}: expected {expected}, found {most}")
        if self.layers:
            return sorted(layer - 1 for layer in self.layers)
        return list(range(count - (self.top_layers or count), count))

    def fitting_rank(self, rank: int, config: EncoderConfig) -> int:
        """Return the rank; raise SettingsError if it exceeds the width of the encoder."""
        if rank > config.hidden_size:
            expected = f"at most {config.hidden_size}, the width of the encoder"
            raise SettingsError(f"adapter_rank: expected {expected}, found {rank}")
        return rank


class Copies(Adapter, name="copies"):
    """Complete layers for each task, which begin as copies of the shared ones: branches.

    If all tasks have a copy of a layer, the shared one is not trained. The copies are merged into
    the encoder by `--mode export --task`.
    """

    rate = "lr"
    lr: Positive | None = setting(
        None, metavar="RATE", help="peak learning rate of the copies (default: the encoder's --lr)"
    )

    def build(self, config: EncoderConfig) -> EncoderAdapter:
        from minbert.layer_copies import LayerCopies

        return LayerCopies(config, self.places(config))


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
        for target in repeated(self.targets):
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
            raise SettingsError(
                f"adapter_rank: expected a multiple of {heads}, the number of attention heads, "
                f"found {rank}"
            )
        shared = not self.own_projections
        rank = self.fitting_rank(rank, config)
        return ProjectedAttention(config, self.places(config), rank, shared)


def branch_settings(values: Sequence[str]) -> dict[str, Any]:
    """Return the settings for the values of `--branch`: auto, top-K, or numbers of layers."""
    first = values[0]
    if len(values) == 1 and first == "auto":
        return {"adapter_conflict_layers": first}
    if len(values) == 1 and first.startswith("top-") and first[4:].isdecimal():
        return {"adapter_top_layers": int(first[4:])}
    if all(one.isdecimal() for one in values):
        return {"adapter_layers": tuple(map(int, values))}
    expected = "auto, top-K such as top-2, or numbers of layers"
    raise SettingsError(f"branch: expected {expected}, found {' '.join(values)}")
