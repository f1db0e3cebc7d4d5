"""AdamW with separate learning rates for encoder and heads, and linear warm-up and decay."""

from __future__ import annotations

import torch

from multitask.config import RunConfig
from multitask.model import EncoderWithHeads


def build_optimizer(model: EncoderWithHeads, config: RunConfig) -> torch.optim.AdamW:
    """Fused AdamW; biases and normalisation weights (one axis) are not decayed."""
    groups = []
    for module, rate in ((model.bi_encoder, config.lr), (model.heads, config.head_lr)):
        parameters = [p for p in module.parameters() if p.requires_grad]
        for decay, chosen in (
            (config.weight_decay, [p for p in parameters if p.ndim > 1]),
            (0.0, [p for p in parameters if p.ndim <= 1]),
        ):
            if chosen:
                groups.append(
                    {"params": chosen, "lr": rate, "peak_lr": rate, "weight_decay": decay}
                )
    return torch.optim.AdamW(groups, fused=True)


def learning_rate_factor(step: int, total: int, warmup: float) -> float:
    """Share of the peak rate in step `step` (from 0): up over `warmup` of `total`, then to 0."""
    rising = max(1, round(total * warmup))
    if step < rising:
        return (step + 1) / rising
    return max(0.0, (total - step) / max(1, total - rising))


def set_learning_rate(optimizer: torch.optim.Optimizer, factor: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group["peak_lr"] * factor
