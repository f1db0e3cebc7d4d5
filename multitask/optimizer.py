"""The optimiser, with separate learning rates for encoder and heads, and its schedule."""

from typing import Any, Literal

from common.later import torch
from common.settings import Fraction, NonNegative, Positive, Settings, setting


class AdamW(Settings, name="adamw"):
    """Fused AdamW (Loshchilov and Hutter, 2019), without decay of biases and normalisation.

    The encoder has one learning rate and the heads another. The default rates were chosen for
    all-MiniLM-L6-v2 in our experiments, on STS dev; BEES fine-tunes BERT base at 2e-5. An optimiser
    of a user derives from this class and overrides `build`.
    """

    lr: Positive = setting(
        1e-4,
        help="peak learning rate of the encoder (default: 1e-4, chosen for minilm, on STS dev; "
        "pretrain: 3e-5)",
        metavar="RATE",
        common=True,
    )
    head_lr: Positive = setting(
        1e-3,
        help="peak learning rate of the heads",
        metavar="RATE",
        source="chosen for minilm, on dev of SST, QQP and STS",
    )
    warmup: Fraction = setting(
        0.1,
        help="share of the steps over which the learning rates rise",
        source="Reimers and Gurevych, 2019, section 3.1",
    )
    lr_schedule: Literal["linear", "constant"] = setting(
        "linear",
        help="after the warm-up, the learning rates fall linearly to 0, or stay constant",
        flag=False,
    )
    weight_decay: NonNegative = setting(0.01, help="weight decay of matrices (BEES, section 5.3)")

    def factor(self, step: int, total: int) -> float:
        """Return the share of the peak rates in step `step` (from 0) of `total`."""
        rising = max(1, round(total * self.warmup))
        if step < rising:
            return (step + 1) / rising
        if self.lr_schedule == "constant":
            return 1.0
        return max(0.0, (total - step) / max(1, total - rising))

    def build(self, model: Any) -> "torch.optim.Optimizer":
        """Return the optimiser of an `EncoderWithHeads`; each group has its peak rate as `lr`."""
        encoder = [*model.bi_encoder.parameters(), *model.branches.parameters()]
        groups: list[dict[str, Any]] = []
        for several, rate in ((encoder, self.lr), (model.heads.parameters(), self.head_lr)):
            trained = [p for p in several if p.requires_grad]
            matrices, vectors = ([p for p in trained if (p.ndim > 1) == m] for m in (True, False))
            for decay, chosen in ((self.weight_decay, matrices), (0.0, vectors)):
                if chosen:
                    groups.append({"params": chosen, "lr": rate, "weight_decay": decay})
        return torch.optim.AdamW(groups, fused=True)
