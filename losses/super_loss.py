"""SuperLoss, the supervised contrastive loss of SuperConText, with its choice of hard negatives."""

from __future__ import annotations

import torch
from torch import Tensor

from losses.supcon import nothing

VARIANTS = ("algorithm1", "equation8")


def super_loss(
    embeddings: Tensor,
    labels: Tensor,
    temperature: float,
    variant: str = "algorithm1",
    top_k: int | None = None,
    threshold: float | None = None,
    top_fraction: float | None = None,
) -> Tensor:
    """An anchor is to be nearer to its class than to the others, on the mean of exp(cosine / t).

    Of anchor i, with v_pos and v_neg those means:  -log(v_pos / (v_pos + v_neg))  (Moukafih et al.,
    SuperConText). `algorithm1` leaves the anchor itself out of v_pos and averages within classes,
    then over them: a class of one example has no term. `equation8` counts the anchor among its
    positives, whose exp(1 / t) then drowns the others, and averages over all examples. Without
    negatives the loss is 0.

    Args:
        embeddings: (N, H), of unit length.
        labels: (N,) classes.
        top_k, threshold, top_fraction: v_neg is the mean over an anchor's hard negatives alone
            (section VI): the k nearest, those of at least this cosine or else the nearest, or the
            nearest share of them. At most one of the three.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant: expected {' or '.join(VARIANTS)}, found {variant!r}")
    if sum(choice is not None for choice in (top_k, threshold, top_fraction)) > 1:
        raise ValueError("top_k, threshold, top_fraction: expected one of them at most")
    if (top_k is not None and top_k < 1) or (
        top_fraction is not None and not 0 < top_fraction <= 1
    ):
        raise ValueError(
            f"expected a top_k of 1 or more, a top_fraction above 0 and at most 1, "
            f"found {top_k if top_k is not None else top_fraction}"
        )
    cosines = embeddings @ embeddings.T
    same = labels[:, None] == labels
    positive = same
    if variant == "algorithm1":
        positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    negative = hard_negatives(cosines.detach(), ~same, top_k, threshold, top_fraction)
    anchors = positive.any(1) & negative.any(1)
    sizes = same.sum(1).to(cosines.dtype)
    weights = 1 / sizes if variant == "algorithm1" else torch.ones_like(sizes)
    total = weights[positive.any(1)].sum()  # an anchor without negatives has a term of 0
    if not anchors.any():
        return nothing(embeddings)
    logits = cosines[anchors] / temperature
    near, far = (log_mean_exp(logits, mask[anchors]) for mask in (positive, negative))
    return (weights[anchors] * (torch.logaddexp(near, far) - near)).sum() / total


def log_mean_exp(logits: Tensor, chosen: Tensor) -> Tensor:
    """Of the chosen ones in each row, of which there is at least one."""
    counts = chosen.sum(1).to(logits.dtype)
    return logits.masked_fill(~chosen, -torch.inf).logsumexp(1) - counts.log()


def hard_negatives(
    cosines: Tensor,
    negative: Tensor,
    top_k: int | None = None,
    threshold: float | None = None,
    top_fraction: float | None = None,
) -> Tensor:
    """Which of an anchor's negatives (N, N) count; of equally near ones the first."""
    if top_k is None and threshold is None and top_fraction is None:
        return negative
    hidden = cosines.masked_fill(~negative, -torch.inf)
    order = hidden.sort(dim=1, descending=True, stable=True).indices
    places = torch.arange(cosines.shape[1], device=cosines.device).expand_as(order)
    ranks = torch.empty_like(order).scatter_(1, order, places)  # of each among the row's, from 0
    if threshold is not None:
        return negative & ((cosines >= threshold) | (ranks == 0))
    counts = negative.sum(1, keepdim=True)
    if top_fraction is not None:
        # Not a sixth for a fifth of five: ceil of a product that rounding made a little larger.
        wanted = (top_fraction * counts.double() - 1e-9).ceil().clamp(min=1)
        return negative & (ranks < wanted)
    assert top_k is not None
    return negative & (ranks < top_k)
