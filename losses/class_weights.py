"""Weights of classes from their numbers of training examples, and the weighted losses.

The weights are those of King and Zeng (2001), "Logistic Regression in Rare Events Data", and of
scikit-learn.
"""

from __future__ import annotations

from common.later import F, Tensor, torch


def balanced_weights(counts: Tensor) -> Tensor:
    """Return n / (C n_c) of each class c, whose mean over the n examples is 1.

    C counts the classes that have examples; a class without any has weight 1.

    Args:
        counts: (..., C) numbers of examples, float64; a row is one set of classes.
    """
    used = counts > 0
    share = counts.sum(-1, keepdim=True) / used.sum(-1, keepdim=True).clamp(min=1)
    return torch.where(used, share / counts.clamp(min=1), 1.0)


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Compute the cross-entropy of each example times the weight of its class; return the mean.

    The mean is over the examples, not over the weights as in `F.cross_entropy`. So the gradient of
    a batch is the mean of those of its parts.

    Args:
        logits: (B, C).
        labels: (B,) classes from 0 to C - 1.
        weights: (C,).
    """
    return F.cross_entropy(logits, labels, weights, reduction="none").mean()


def weighted_binary_cross_entropy(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Compute the binary cross-entropy of several labels, with a weight of the positive examples.

    Args:
        logits: (B, L).
        targets: (B, L) from 0 to 1.
        weights: (L,), a factor of the loss where a target is 1.
    """
    return F.binary_cross_entropy_with_logits(logits, targets, pos_weight=weights)
