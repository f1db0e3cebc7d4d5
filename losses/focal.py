"""The focal loss, in which examples that are classified well count less.

Lin et al. (2017): "Focal Loss for Dense Object Detection", section 3. The logarithms of 1 - p are
computed from the logits, so that loss and gradient are finite where p is rounded to 1.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def focal_loss(
    logits: Tensor, labels: Tensor, gamma: float, weights: Tensor | None = None
) -> Tensor:
    """Compute -w_y (1 - p_y)^gamma log p_y, averaged over the batch (Lin et al., 2017, Eq. 5).

    p_y is the softmax probability of the label y, and w_y the weight of its class, 1 by default.
    With gamma = 0 this is the cross-entropy; the paper finds gamma = 2 best.

    Args:
        logits: (B, C).
        labels: (B,) classes from 0 to C - 1.
        gamma: 0 or more.
        weights: (C,).
    """
    others = logits.scatter(1, labels[:, None], -float("inf"))
    rest = others.logsumexp(1) - logits.logsumexp(1)  # log (1 - p_y), (B,)
    losses = F.cross_entropy(logits, labels, weights, reduction="none")
    return ((gamma * rest).exp() * losses).mean()


def sigmoid_focal_loss(
    logits: Tensor, targets: Tensor, gamma: float, weights: Tensor | None = None
) -> Tensor:
    """Compute the focal loss of several labels, averaged over all (Lin et al., 2017, Eq. 4).

    A label's term is -(1 - p_t)^gamma log p_t, where p_t is the probability of its target.

    Args:
        logits: (B, L).
        targets: (B, L), 0 or 1.
        gamma: 0 or more.
        weights: (L,), a factor of the terms whose target is 1.
    """
    rest = F.logsigmoid((1 - 2 * targets) * logits)  # log (1 - p_t), (B, L)
    losses = F.binary_cross_entropy_with_logits(
        logits, targets, pos_weight=weights, reduction="none"
    )
    return ((gamma * rest).exp() * losses).mean()
