"""How far two outputs of a model lie apart, for losses that hold predictions steady."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def symmetric_kl(logits_p: Tensor, logits_q: Tensor) -> Tensor:
    """KL(P || Q) + KL(Q || P), summed over the classes, mean over the batch.

    Both sides are differentiated. SMART's l_s for classification (Jiang et al., 2020, Eq. 2).

    Args:
        logits_p, logits_q: (B, C).
    """
    same_shape(logits_p, logits_q)
    p, q = logits_p.log_softmax(-1), logits_q.log_softmax(-1)
    # (P - Q)(log P - log Q) is both directions at once, and exactly 0 where they agree.
    return ((p.exp() - q.exp()) * (p - q)).sum(-1).mean()


def squared_difference(values_p: Tensor, values_q: Tensor) -> Tensor:
    """Mean of (P - Q)^2 over the batch: SMART's l_s for regression.

    Args:
        values_p, values_q: (B,); another shape on one side would be stretched, and is refused.
    """
    same_shape(values_p, values_q)
    return F.mse_loss(values_p, values_q)


def same_shape(one: Tensor, other: Tensor) -> None:
    """ValueError unless they have it: PyTorch would stretch one of them."""
    if one.shape != other.shape:
        raise ValueError(
            f"expected two of the same shape, found {tuple(one.shape)} and {tuple(other.shape)}"
        )
