"""Optimisers with separate learning rates for encoder and heads, and their schedules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from common.errors import UserError
from common.later import nn, torch
from common.settings import Fraction, NonNegative, Positive, Ratio, Settings, setting

CHOSEN = "chosen for minilm, on STS dev"


class Optimizer(Settings):
    """An optimiser, with one learning rate for the encoder and one for the heads.

    The default rates were chosen for all-MiniLM-L6-v2 in our experiments, on STS dev;
    BEES fine-tunes BERT base at 2e-5. `of_encoder` names the settings that act on the encoder only.
    """

    of_encoder: ClassVar[tuple[str, ...]] = ("lr",)
    lr: Positive = setting(
        1e-4,
        help="peak learning rate of the encoder",
        metavar="RATE",
        common=True,
        source=CHOSEN,
    )
    head_lr: Positive = setting(
        1e-4,
        help="peak learning rate of the heads",
        metavar="RATE",
        common=True,
        source=CHOSEN,
    )

    warmup: Fraction = setting(
        0.1,
        help="share of the steps over which the learning rates rise",
        source="Reimers and Gurevych, 2019, section 3.1",
    )
    lr_schedule: Literal["linear", "constant"] = setting(
        "linear",
        help="after the warm-up, the learning rates fall to 0 in a line, or stay",
        flag=False,
    )

    def factor(self, step: int, total: int) -> float:
        """Return the share of the peak rates in step `step` (from 0) of `total`."""
        rising = max(1, round(total * self.warmup))
        if step < rising:
            return (step + 1) / rising
        if self.lr_schedule == "constant":
            return 1.0
        return max(0.0, (total - step) / max(1, total - rising))

    def build(self, model: Any) -> torch.optim.Optimizer:
        """Return the optimiser of an `EncoderWithHeads`; each group has its peak rate as `lr`."""
        raise UserError(f"optimizer {self.name}: expected build")


class AdamW(Optimizer, name="adamw"):
    """Fused AdamW (Loshchilov and Hutter, 2019), without decay of biases and normalisation."""

    of_encoder = ("lr", "layer_decay")
    weight_decay: NonNegative = setting(0.01, help="weight decay of matrices (BEES, section 5.3)")
    layer_decay: Ratio = setting(
        1.0,
        help="learning rate of an encoder layer as a share of that of the layer above it (Howard "
        "and Ruder, 2018, section 3.2); the embeddings count as the lowest layer",
        flag=False,
    )

    def build(self, model: Any) -> torch.optim.Optimizer:
        groups: list[dict[str, Any]] = []
        for several, rate in self.rates(model):
            trained = [p for p in several if p.requires_grad]
            matrices, vectors = ([p for p in trained if (p.ndim > 1) == m] for m in (True, False))
            for decay, chosen in ((self.weight_decay, matrices), (0.0, vectors)):
                if chosen:
                    groups.append({"params": chosen, "lr": rate, "weight_decay": decay})
        return torch.optim.AdamW(groups, fused=True)

    def rates(self, model: Any) -> Iterable[tuple[Iterable[nn.Parameter], float]]:
        """Yield parameters with their peak rate.

        Layer l of L has the rate lr x layer_decay^(L - l), and the embeddings are layer 0. The own
        layers of a task have the rate of the layers that they replace.
        """
        if self.layer_decay == 1:  # two groups in place of two a layer
            yield model.bi_encoder.parameters(), self.lr
        else:
            for below, section in enumerate(reversed(model.sections().values())):
                yield section, self.lr * self.layer_decay**below
        yield model.heads.parameters(), self.head_lr
        branches: Iterable[Any] = model.branches.values()
        for layers in branches:
            for below, layer in enumerate(reversed(layers)):
                yield layer.parameters(), self.lr * self.layer_decay**below
