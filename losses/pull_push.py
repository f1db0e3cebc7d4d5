"""Contrastive learning as two objectives: pull classes together, push them apart (SCL-MOO)."""

from __future__ import annotations

from common.later import F, Tensor, torch
from losses.checks import check_labels, zero_loss


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
    """
    check_labels(labels, len(embeddings))
    unit = F.normalize(embeddings, dim=-1)
    logits = unit @ unit.T / temperature
    same = labels[:, None] == labels
    itself = torch.eye(len(logits), dtype=torch.bool, device=logits.device)

    def objective(chosen: Tensor) -> Tensor:
        rows = chosen.any(1)
        if not rows.any():
            return zero_loss(embeddings)
        return class_mean(log_mean_exp(logits[rows], chosen[rows]), same[rows].sum(1))

    return -objective(same & ~itself), objective(~same)


def log_mean_exp(logits: Tensor, chosen: Tensor) -> Tensor:
    """Return the logarithm of the mean of exp over each row's chosen logits, one or more."""
    counts = chosen.sum(1).to(logits.dtype)
    return logits.masked_fill(~chosen, -torch.inf).logsumexp(1) - counts.log()


def class_mean(terms: Tensor, sizes: Tensor) -> Tensor:
    """Average terms (n,) within classes, then over classes; `sizes` (n,) are those of the classes.

    A class has terms of all its examples, or of none.
    """
    weights = 1 / sizes.to(terms.dtype)
    return (weights * terms).sum() / weights.sum()


def lower_bounds(temperature: float, classes: int) -> tuple[float, float]:
    """Return the lowest values of (pull, push), which a simplex of the classes reaches.

    The bound of push follows from Jensen's inequality and the length of the sum of the class means,
    for batches with equally many examples per class; in others push can fall to -1 / temperature.
    EPO needs non-negative objectives; subtracting these constants does not change any gradient.
    """
    return -1 / temperature, -1 / (max(classes - 1, 1) * temperature)
