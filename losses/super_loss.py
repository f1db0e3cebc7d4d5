"""SuperLoss, SuperConText's supervised contrastive loss, with its selection of hard negatives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal, get_args

from common.later import F, Tensor, torch
from common.settings import Cosine, Count, NonNegativeInt, Positive, Ratio, setting
from losses.checks import check_labels, zero_loss
from losses.objectives import TEMPERATURE, TEMPERATURE_HELP, ClassLoss, ClassObjective
from losses.pull_push import class_mean, log_mean_exp

Variant = Literal["algorithm1", "equation8"]


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
    """
    check_labels(labels, len(embeddings))
    if variant not in get_args(Variant):
        raise ValueError(f"variant: expected algorithm1 or equation8, found {variant!r}")
    if sum(one is not None for one in (top_k, threshold, top_fraction)) > 1:
        raise ValueError("top_k, threshold, top_fraction: expected at most one of them")
    unit = F.normalize(embeddings, dim=-1)
    logits = unit @ unit.T / temperature
    same = labels[:, None] == labels
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    near, far = same & ~itself, ~same
    if positives is not None:
        near &= near.cumsum(1) <= positives
    if variant == "equation8":
        near |= itself
    if negatives is not None:
        far &= turns(labels) < negatives
    if (top_k, threshold, top_fraction) != (None, None, None):
        # Divided like the cosines, so that a cosine equal to the threshold counts.
        least = None if threshold is None else logits.new_tensor(threshold) / temperature
        far &= nearest(logits.detach().masked_fill(~far, -torch.inf), top_k, least, top_fraction)
    rows = near.any(1) & far.any(1)
    if not rows.any():
        return zero_loss(embeddings)
    pull, push = (log_mean_exp(logits[rows], chosen[rows]) for chosen in (near, far))
    terms = -F.logsigmoid(pull - push)  # -log(p / (p + n)) from log p and log n
    return terms.mean() if variant == "equation8" else class_mean(terms, same[rows].sum(1))


def turns(labels: Tensor) -> Tensor:
    """Return the turn (N, N) of each example among the negatives of each anchor, from 0.

    Classes take turns, beginning with the one after the anchor's; the anchor's own is last.
    """
    classes, number = labels.unique(return_inverse=True)
    same = labels[:, None] == labels
    turn = same.tril(-1).sum(1) * len(classes) + (number - number[:, None]) % len(classes)
    return turn.masked_fill(same, len(labels) * len(classes)).argsort(1).argsort(1)


def nearest(
    logits: Tensor, top_k: int | None, least: Tensor | None, top_fraction: float | None
) -> Tensor:
    """Mark (N, M) each row's highest logits, of which the finite ones count; ties: the first.

    These are `top_k`, all of at least `least`, or a fraction, and always the highest one.
    """
    ordered, places = logits.sort(dim=1, descending=True, stable=True)
    rank = torch.arange(logits.shape[1], device=logits.device).expand_as(logits)
    kept = rank < (top_k or 1)
    if least is not None:
        kept |= ordered >= least
    elif top_fraction is not None:
        # 1e-9 absorbs rounding errors: ceil must not count one more for a product just above k.
        share = top_fraction * logits.isfinite().sum(1, keepdim=True).double()
        kept |= rank < (share - 1e-9).ceil()
    return torch.zeros_like(kept).scatter(1, places, kept)


class SuperLoss(ClassObjective, name="superloss"):
    """Bring texts nearer to their class than to others, on average (SuperConText)."""

    contrast_temperature: Positive = setting(TEMPERATURE, **TEMPERATURE_HELP, flag=False)
    super_loss: Variant = setting(
        "algorithm1", help="variant of the loss: the paper's algorithm, or its equation", flag=False
    )
    positives: Count | None = setting(
        None,
        help="compare an anchor with at most N examples of its class, the first in the batch",
        flag=False,
    )
    negatives: Count | None = setting(
        None,
        help="compare an anchor with at most N examples of other classes, the first in the batch",
        flag=False,
    )
    hard_top_k: Count | None = setting(
        None, help="only the N nearest of an anchor's negatives", flag=False
    )
    hard_threshold: Cosine | None = setting(
        None,
        help="only negatives with at least this cosine or, without any, the nearest one",
        metavar="X",
        flag=False,
    )
    hard_top_fraction: Ratio | None = setting(
        None, help="only the nearest share of the negatives", flag=False
    )
    hard_after: NonNegativeInt = setting(
        0, help="number of first epochs that use all negatives", flag=False
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

    def class_loss(self, embeddings: Tensor, classes: Tensor, **hard: Any) -> Tensor:
        hard |= {"positives": self.positives, "negatives": self.negatives}
        return super_loss(embeddings, classes, self.contrast_temperature, self.super_loss, **hard)

    def losses(self) -> tuple[ClassLoss, tuple[int, ClassLoss] | None]:
        with_hard = partial(self.class_loss, **self.hard)
        if not self.hard_after:
            return with_hard, None
        return self.class_loss, (self.hard_after, with_hard)
