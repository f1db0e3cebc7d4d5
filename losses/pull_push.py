"""Contrastive learning as two objectives: pull classes together, push them apart (SCL-MOO)."""

from __future__ import annotations

from common.later import F, Tensor, torch
from losses.checks import check_labels, check_temperature
from losses.supcon import zero_loss


def contrastive_objectives(
    embeddings: Tensor, labels: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Compute (pull, push) of Moukafih et al. (2022), Eq. 2 and 3, as log-mean-exp of cosines.

    Pull is the negative similarity of an example to the others of its class, push its similarity to
    other classes. Each is averaged within classes, then over the classes that have terms. A class
    of one example has no pull; a batch of one class has no push. An objective without terms is 0
    with a zero gradient.

    Both lie within +/- 1 / temperature; `lower_bounds` gives their lower bounds.

    Args:
        embeddings: (N, H), normalised here.
        labels: (N,) classes.

    Raises:
        ValueError: for labels of another shape, or a temperature of 0 or below.
    """
    check_labels(labels, len(embeddings))
    check_temperature(temperature)
    unit = F.normalize(embeddings, dim=-1)
    logits = unit @ unit.T / temperature
    same = labels[:, None] == labels
    itself = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    sizes = same.sum(1)
    pull = class_mean(logits, same & ~itself, sizes)
    push = class_mean(logits, ~same, sizes)
    return (
        zero_loss(embeddings) if pull is None else -pull,
        zero_loss(embeddings) if push is None else push,
    )


def class_mean(logits: Tensor, chosen: Tensor, sizes: Tensor) -> Tensor | None:
    """Average the log-mean-exp of each row's chosen logits within classes, then over classes.

    `sizes` (N,) are the class sizes. Returns None if no row has a chosen logit.
    """
    counts = chosen.sum(1).to(logits.dtype)
    rows = counts > 0
    if not rows.any():
        return None
    logits, counts, weights = logits[rows], counts[rows], 1 / sizes[rows].to(logits.dtype)
    nearness = logits.masked_fill(~chosen[rows], -torch.inf).logsumexp(1) - counts.log()
    return (weights * nearness).sum() / weights.sum()


def lower_bounds(temperature: float, classes: int) -> tuple[float, float]:
    """Return the lowest values of (pull, push), which a simplex of the classes reaches.

    The bound of push follows from Jensen's inequality and the length of the sum of the class means,
    for batches with equally many examples per class; in others push can fall to -1 / temperature.
    EPO needs non-negative objectives; subtracting these constants does not change any gradient.
    """
    return -1 / temperature, -1 / (max(classes - 1, 1) * temperature)
