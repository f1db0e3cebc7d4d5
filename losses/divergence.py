"""Divergences between two outputs of a model, for losses that keep predictions stable."""

from __future__ import annotations

from common.later import F, Tensor, torch
from losses.checks import same_shape


def symmetric_kl(logits_p: Tensor, logits_q: Tensor) -> Tensor:
    """Compute KL(P || Q) + KL(Q || P), summed over the classes, averaged over the batch.

    Both arguments receive gradients. SMART's l_s for classification (Jiang et al., 2020, Eq. 2).

    Args:
        logits_p, logits_q: (B, C).
    """
    same_shape(logits_p, logits_q)
    p, q = logits_p.log_softmax(-1), logits_q.log_softmax(-1)
    # (P - Q)(log P - log Q) covers both directions and is exactly 0 for equal outputs.
    return ((p.exp() - q.exp()) * (p - q)).sum(-1).mean()


def squared_difference(values_p: Tensor, values_q: Tensor) -> Tensor:
    """Compute the mean of (P - Q)^2 of values (B,): SMART's l_s for regression.

    Different shapes raise ValueError and are not broadcast.
    """
    same_shape(values_p, values_q)
    return F.mse_loss(values_p, values_q)


def soft_divergence(probabilities: Tensor, soft: Tensor, temperature: float = 1.0) -> Tensor:
    """Compute temperature^2 x KL(soft || probabilities), averaged over the batch.

    The temperature divides the logarithms of both, which are then normalised again; its square
    keeps the size of the gradient (Hinton et al., 2015, section 2). Only `probabilities` receives
    a gradient.

    Args:
        probabilities: (B, C) of the student.
        soft: (B, C) of the teacher.
        temperature: above 0; 1 leaves the probabilities as they are.
    """
    same_shape(probabilities, soft)
    least = torch.finfo(probabilities.dtype).tiny
    found, expected = (
        (values.clamp_min(least).log() / temperature).log_softmax(-1)
        for values in (probabilities, soft.detach())
    )
    return temperature**2 * F.kl_div(found, expected, reduction="batchmean", log_target=True)
