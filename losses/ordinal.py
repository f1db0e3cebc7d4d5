"""Losses of ordered classes 0, ..., C - 1, in which a near class is a smaller error than a far one.

CORN is a chain of binary decisions (Shi, Cao and Raschka, 2021: "Deep Neural Networks for
Rank-Consistent Ordinal Regression Based On Conditional Probabilities"). Soft labels by distance are
those of Diaz and Marathe (2019): "Soft Labels for Ordinal Regression".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from losses.checks import check_labels


def corn_log_probabilities(logits: Tensor) -> Tensor:
    """Return the logarithms of the class probabilities of CORN, (B, C).

    Logit k is that of P(class > k | class >= k), and P(class > k) is the product of the first k + 1
    of these probabilities (Shi et al., 2021). The probabilities of the classes add up to 1.

    Args:
        logits: (B, C - 1).
    """
    at_least = F.pad(F.logsigmoid(logits).cumsum(-1), (1, 0))  # log P(class >= k), (B, C)
    not_above = F.pad(F.logsigmoid(-logits), (0, 1))  # log P(class = k | class >= k), (B, C)
    return at_least + not_above


def corn_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the binary cross-entropy of CORN's conditional decisions (Shi et al., 2021).

    Decision k is trained on the subset of examples with class >= k. The sum over the decisions of
    an example is -log of the probability of its class. The loss is the mean over the examples; the
    paper's divides the sum by the sizes of all subsets together, a factor that depends on the
    labels.

    Args:
        logits: (B, C - 1).
        labels: (B,) classes from 0 to C - 1.
    """
    return F.nll_loss(corn_log_probabilities(logits), labels, reduction="none").mean()


def distance_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the cross-entropy of soft labels by distance, averaged over the batch.

    The target of class j is the softmax over j of -|j - label| (Diaz and Marathe, 2019).

    Args:
        logits: (B, C).
        labels: (B,) classes from 0 to C - 1.

    Raises:
        ValueError: for labels of another shape.
    """
    check_labels(labels, len(logits))
    classes = torch.arange(logits.shape[1], device=logits.device)
    distances = (classes - labels[:, None]).abs()  # (B, C)
    return F.cross_entropy(logits, distances.neg().to(logits.dtype).softmax(-1))
