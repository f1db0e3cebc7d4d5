"""Optimisers with separate learning rates for encoder and heads, and their schedules."""

from __future__ import annotations

from typing import Any, Literal

from common.errors import UserError
from common.later import torch
from common.settings import Fraction, NonNegative, Positive, Settings, setting

CHOSEN = "chosen for minilm, on STS dev"


class Optimizer(Settings):
    """An optimiser, with one learning rate for the encoder and one for the heads.

    The default rates were chosen for all-MiniLM-L6-v2 in our experiments, on STS dev;
    BEES fine-tunes BERT base at 2e-5.
    """

    lr: Positive = setting(
        1e-4,
        help=f"peak learning rate of the encoder (default: 1e-4, {CHOSEN}; pretrain: 3e-5)",
        metavar="RATE",
        common=True,
    )
    head_lr: Positive = setting(
        1e-4, help="peak learning rate of the heads", metavar="RATE", source=CHOSEN
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

    weight_decay: NonNegative = setting(0.01, help="weight decay of matrices (BEES, section 5.3)")

    def build(self, model: Any) -> torch.optim.Optimizer:
        encoder = [*model.bi_encoder.parameters(), *model.branches.parameters()]
        groups: list[dict[str, Any]] = []
        for several, rate in ((encoder, self.lr), (model.heads.parameters(), self.head_lr)):
            trained = [p for p in several if p.requires_grad]
            matrices, vectors = ([p for p in trained if (p.ndim > 1) == m] for m in (True, False))
            for decay, chosen in ((self.weight_decay, matrices), (0.0, vectors)):
                if chosen:
                    groups.append({"params": chosen, "lr": rate, "weight_decay": decay})
        return torch.optim.AdamW(groups, fused=True)
