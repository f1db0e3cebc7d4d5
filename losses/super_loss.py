"""SuperLoss, the supervised contrastive loss of SuperConText, with its choice of hard negatives."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
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
    positives: int | None = None,
    negatives: int | None = None,
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
        positives, negatives: at most so many of an anchor count (section V.D): the first of its
            class in the batch, and the first of the others, one of each class after the other, the
            class after its own coming first.
    """
    check(variant, top_k, threshold, top_fraction, positives, negatives)
    order = labels.argsort(stable=True)
    sizes = labels[order].unique_consecutive(return_counts=True)[1].tolist()
    if len(sizes) < 2:
        return nothing(embeddings)
    grouped = embeddings.index_select(0, order)
    logits = grouped @ grouped.T / temperature
    # Divided as the cosines are, so that one of just this size counts.
    least = None if threshold is None else logits.new_tensor(threshold) / temperature
    places = torch.cat([torch.arange(size, device=labels.device) for size in sizes])
    pulled, pushed = [], []
    begin = 0
    for size, band in zip(sizes, logits.split(sizes), strict=True):
        before, own, after = band.split([begin, size, len(labels) - begin - size], 1)
        begin += size
        if variant == "algorithm1" and size == 1:
            continue
        others = torch.cat([after, before], 1)
        if negatives is not None:
            turns = torch.cat([places[begin:], places[: begin - size]]).argsort(stable=True)
            others = others[:, turns[:negatives]]
        near = positives_of(own, positives, variant == "equation8")
        far, count = hardest(others, top_k, least, top_fraction)
        pulled.append(near.logsumexp(1) - math.log(near.shape[1]))
        pushed.append(far.logsumexp(1) - count.log())
    if not pulled:
        return nothing(embeddings)
    # -log(p / (p + n)) of logarithms
    terms = -F.logsigmoid(torch.cat(pulled) - torch.cat(pushed))
    if variant == "equation8":
        return terms.mean()
    of_classes = terms.split([len(several) for several in pulled])
    return torch.stack([several.mean() for several in of_classes]).mean()


def positives_of(logits: Tensor, most: int | None, itself: bool) -> Tensor:
    """Logits (n, n) of a class' examples -> of each with the first of its others (n, n - 1).

    With `itself` also with itself, which is never among those left out.
    """
    if itself and most is None:
        return logits
    count = len(logits)
    # Without the diagonal: from the second number on, one in n + 1 is of it.
    others = logits.flatten()[1:].view(count - 1, count + 1)[:, :-1].reshape(count, count - 1)
    others = others[:, :most]
    return torch.cat([logits.diagonal()[:, None], others], 1) if itself else others


def hardest(
    logits: Tensor,
    top_k: int | None = None,
    least: Tensor | None = None,
    top_fraction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Of each row's logits (n, m) those that count, and how many: (n,) or one for all rows.

    Those of at least `least`, or else the nearest. Of equal ones the first; others are -inf, or not
    there.
    """
    if least is None and top_k is None and top_fraction is None:
        return logits, logits.new_tensor(logits.shape[1])
    ordered = logits.sort(dim=1, descending=True, stable=True).values
    if least is not None:
        far = ordered < least
        far[:, 0] = False
        return ordered.masked_fill(far, -torch.inf), (~far).sum(1).to(logits.dtype)
    if top_fraction is not None:
        # Not a sixth for a fifth of five: ceil of a product that rounding made a little larger.
        top_k = max(1, math.ceil(top_fraction * logits.shape[1] - 1e-9))
    kept = ordered[:, :top_k]
    return kept, logits.new_tensor(kept.shape[1])


def check(
    variant: str,
    top_k: int | None,
    threshold: float | None,
    top_fraction: float | None,
    positives: int | None,
    negatives: int | None,
) -> None:
    """Raises ValueError for settings that mean nothing."""
    if variant not in VARIANTS:
        raise ValueError(f"variant: expected {' or '.join(VARIANTS)}, found {variant!r}")
    if sum(choice is not None for choice in (top_k, threshold, top_fraction)) > 1:
        raise ValueError("top_k, threshold, top_fraction: expected at most one of them")
    counts = {"top_k": top_k, "positives": positives, "negatives": negatives}
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ValueError(f"{name}: expected 1 or more, found {count}")
    if top_fraction is not None and not 0 < top_fraction <= 1:
        raise ValueError(f"top_fraction: expected above 0 and at most 1, found {top_fraction}")
