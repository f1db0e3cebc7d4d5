"""SuperLoss, SuperConText's supervised contrastive loss, with its selection of hard negatives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

from common.later import F, Tensor, torch
from common.settings import Cosine, Count, NonNegativeInt, Positive, Ratio, setting
from losses.checks import check_labels, check_temperature
from losses.objectives import TEMPERATURE, TEMPERATURE_HELP, ClassLoss, ClassObjective
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
        embeddings: (N, H), normalised here.
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
    grouped = F.normalize(embeddings, dim=-1).index_select(0, order)
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


class SuperLoss(ClassObjective, name="superloss"):
    """Texts are nearer to their class than to others, on average (SuperConText)."""

    contrast_temperature: Positive = setting(TEMPERATURE, **TEMPERATURE_HELP)
    super_loss: Literal["algorithm1", "equation8"] = setting(
        "algorithm1", help="variant of the loss: the paper's algorithm, or its equation"
    )
    positives: Count | None = setting(
        None, help="compare an anchor with at most N examples of its class, the first in the batch"
    )
    negatives: Count | None = setting(
        None,
        help="compare an anchor with at most N examples of other classes, the first in the batch",
    )
    hard_top_k: Count | None = setting(None, help="only the N nearest of an anchor's negatives")
    hard_threshold: Cosine | None = setting(
        None, help="only negatives of at least this cosine, or else the nearest", metavar="X"
    )
    hard_top_fraction: Ratio | None = setting(None, help="only the nearest share of the negatives")
    hard_after: NonNegativeInt = setting(
        0, help="epochs with all negatives before only the hard ones count"
    )

    @property
    def hard(self) -> dict[str, Any]:
        """Return the selection of hard negatives as keywords of `losses.super_loss`."""
        found = {n: getattr(self, f"hard_{n}") for n in ("top_k", "threshold", "top_fraction")}
        return {name: value for name, value in found.items() if value is not None}

    def faults(self) -> Iterator[str]:
        if len(self.hard) > 1:
            names = " and ".join(f"hard_{name}" for name in self.hard)
            yield f"{names}: expected at most one of them"
        if self.hard_after and not self.hard:
            yield "hard_after: expected hard_top_k, hard_threshold or hard_top_fraction, found none"

    def length_faults(self, epochs: int) -> Iterator[str]:
        if self.hard_after and self.hard_after >= epochs:
            yield f"hard_after: expected fewer than epochs {epochs}, found {self.hard_after}"

    def class_loss(self, embeddings: Tensor, classes: Tensor, **hard: Any) -> Tensor:
        hard |= {"positives": self.positives, "negatives": self.negatives}
        return super_loss(embeddings, classes, self.contrast_temperature, self.super_loss, **hard)

    def losses(self) -> tuple[ClassLoss, tuple[int, ClassLoss] | None]:
        with_hard = partial(self.class_loss, **self.hard)
        if not self.hard_after:
            return with_hard, None
        return self.class_loss, (self.hard_after, with_hard)
