"""Contrastive learning as two objectives: pull a class together, push classes apart (SCL-MOO)."""

from __future__ import annotations

import torch
from torch import Tensor

from losses.supcon import nothing


def contrastive_objectives(
    embeddings: Tensor, labels: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """(pull, push): Moukafih et al. (2022), Eq. 2 and 3, as log-mean-exp of cosines.

    Pull is minus the nearness of an example to the others of its class, push its nearness to those
    of other classes; each a mean within the class, then over the classes that have one: a class of
    one example has no pull, a batch of one class no push. Where nothing is defined the objective is
    0 and has no gradient.

    Both lie between -1 and 1 over the temperature; `ideal_points` says how far they can fall.

    Args:
        embeddings: (N, H), of unit length.
        labels: (N,) classes.
    """
    logits = embeddings @ embeddings.T / temperature
    same = labels[:, None] == labels
    itself = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    sizes = same.sum(1)
    pull = class_mean(logits, same & ~itself, sizes)
    push = class_mean(logits, ~same, sizes)
    return (
        nothing(embeddings) if pull is None else -pull,
        nothing(embeddings) if push is None else push,
    )


def class_mean(logits: Tensor, chosen: Tensor, sizes: Tensor) -> Tensor | None:
    """Log-mean-exp of the chosen logits of each row, a mean over classes of `sizes` (N,).

    None where no row has any.
    """
    counts = chosen.sum(1).to(logits.dtype)
    rows = counts > 0
    if not rows.any():
        return None
    logits, counts, weights = logits[rows], counts[rows], 1 / sizes[rows].to(logits.dtype)
    nearness = logits.masked_fill(~chosen[rows], -torch.inf).logsumexp(1) - counts.log()
    return (weights * nearness).sum() / weights.sum()


def ideal_points(temperature: float, classes: int) -> tuple[float, float]:
    """The lowest values of (pull, push), which a simplex of the classes reaches.

    Push: by Jensen's inequality and the length of the sum of the class means, in batches with as
    many examples of each of the classes; others can go lower, to -1 / temperature. EPO wants
    objectives of zero or more: subtracting these constants changes no gradient.
    """
    return -1 / temperature, -1 / (max(classes - 1, 1) * temperature)
