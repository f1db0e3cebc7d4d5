"""SuperLoss, SuperConText's supervised contrastive loss, with its selection of hard negatives."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from losses.checks import check_labels, check_temperature
from losses.supcon import zero_loss

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
    """Contrast each anchor's class with other classes by the means of exp(cosine / temperature).

    The term of an anchor is -log(v_pos / (v_pos + v_neg)), where v_pos and v_neg are the means over
    its positives and negatives (Moukafih et al., SuperConText). `algorithm1` excludes the anchor
    from v_pos and averages within classes, then over classes; a class of one example has no term.
    `equation8` includes the anchor in v_pos, where its exp(1 / temperature) dominates, and averages
    over all examples. Without negatives the loss is 0.

    Args:
        embeddings: (N, H), of unit length.
        labels: (N,) classes.
        top_k, threshold, top_fraction: restrict v_neg to an anchor's hard negatives (section VI):
            the k nearest, the nearest and all with at least this cosine, or the nearest fraction.
            At most one of the three.
        positives, negatives: maximum numbers per anchor (section V.D): the first examples of its
            class in the batch, and the first of the other classes in round-robin order, which
            begins with the class after its own.

    Raises:
        ValueError: for another variant, several kinds of hard negatives, numbers out of range, or
            labels of another shape.
    """
    check(variant, top_k, threshold, top_fraction, positives, negatives)
    check_labels(labels, len(embeddings))
    check_temperature(temperature)
    order = labels.argsort(stable=True)
    sizes = labels[order].unique_consecutive(return_counts=True)[1].tolist()
    if len(sizes) < 2:
        return zero_loss(embeddings)
    grouped = embeddings.index_select(0, order)
    logits = grouped @ grouped.T / temperature
    # Divided like the cosines, so that a cosine equal to the threshold counts.
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
        elif (top_k, threshold, top_fraction) != (None, None, None):  # ties: first in the batch
            others = others[:, torch.cat([order[begin:], order[: begin - size]]).argsort()]
        near = positives_of(own, positives, variant == "equation8")
        far, count = select_hard_negatives(others, top_k, least, top_fraction)
        pulled.append(near.logsumexp(1) - math.log(near.shape[1]))
        pushed.append(far.logsumexp(1) - count.log())
    if not pulled:
        return zero_loss(embeddings)
    # -log(p / (p + n)) from log p and log n
    terms = -F.logsigmoid(torch.cat(pulled) - torch.cat(pushed))
    if variant == "equation8":
        return terms.mean()
    of_classes = terms.split([len(several) for several in pulled])
    return torch.stack([several.mean() for several in of_classes]).mean()


def positives_of(logits: Tensor, most: int | None, itself: bool) -> Tensor:
    """Select from a class's logits (n, n) those of each example with its first `most` others.

    With `itself`, the logit of the example with itself is included in addition.
    """
    if itself and most is None:
        return logits
    count = len(logits)
    # Drop the diagonal: after the first element, it is every (n + 1)-th element.
    others = logits.flatten()[1:].view(count - 1, count + 1)[:, :-1].reshape(count, count - 1)
    others = others[:, :most]
    return torch.cat([logits.diagonal()[:, None], others], 1) if itself else others


def select_hard_negatives(
    logits: Tensor,
    top_k: int | None = None,
    least: Tensor | None = None,
    top_fraction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return each row's hard logits of (n, m) and their number: (n,), or one for all rows.

    With `least`, these are the logits of at least `least`, and always the highest; else the highest
    ones. Ties keep their order. Other logits are -inf or removed.
    """
    if least is None and top_k is None and top_fraction is None:
        return logits, logits.new_tensor(logits.shape[1])
    ordered = logits.sort(dim=1, descending=True, stable=True).values
    if least is not None:
        far = ordered < least
        far[:, 0] = False
        return ordered.masked_fill(far, -torch.inf), (~far).sum(1).to(logits.dtype)
    if top_fraction is not None:
        # 1e-9 absorbs rounding errors: ceil must not count one more for a product just above k.
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
    """Raise ValueError for invalid settings."""
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
