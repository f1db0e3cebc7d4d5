"""Cross-entropy with logits that are adjusted to the frequencies of the classes.

Menon et al. (2021): "Long-Tail Learning via Logit Adjustment". Only the loss adjusts them: the
largest logit itself is the prediction for the balanced error, in which all classes count the same.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def logit_adjusted_loss(logits: Tensor, labels: Tensor, priors: Tensor, tau: float) -> Tensor:
    """Compute the cross-entropy of logits + tau log priors, averaged over the batch.

    Menon et al., 2021, Eq. 10.

    Args:
        logits: (B, C).
        labels: (B,) classes from 0 to C - 1.
        priors: (C,) shares of the training examples, above 0.
        tau: 0 for plain cross-entropy; 1 is consistent for the balanced error.
    """
    return F.cross_entropy(logits + tau * priors.log(), labels)


def binary_logit_adjusted_loss(
    logits: Tensor, targets: Tensor, priors: Tensor, tau: float
) -> Tensor:
    """Compute the binary cross-entropy of several labels with adjusted logits.

    A label is two classes with the logits 0 and z. Eq. 10 (Menon et al., 2021) then adds tau times
    the log-odds log(prior / (1 - prior)) to z.

    Args:
        logits: (B, L).
        targets: (B, L) from 0 to 1.
        priors: (L,) shares of the training examples that have the label, between 0 and 1.
        tau: 0 for plain binary cross-entropy.
    """
    return F.binary_cross_entropy_with_logits(logits + tau * priors.logit(), targets)
