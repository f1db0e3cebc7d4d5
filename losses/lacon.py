"""LaCon: contrastive losses between instances and label embeddings (Zhang et al., 2022).

Shapes: N instances, C labels, H width. All functions normalise their vectors.
"""

from __future__ import annotations

from common.later import F, Tensor, torch
from losses.checks import check_labels, zero_loss


def instance_centered_loss(
    instances: Tensor,
    label_embeddings: Tensor,
    labels: Tensor,
    temperature: float,
    heads: int = 1,
) -> Tensor:
    """Compute InfoNCE of cosines between each instance and all C labels (LaCon, Eq. 3 and 4).

    With several heads, which divide H, each vector is split into slices of equal width, one per
    head. Each slice is normalised separately; the losses of the heads are summed, not averaged.

    Args:
        instances: (N, H).
        label_embeddings: (C, H).
        labels: (N,) classes.
    """
    check_labels(labels, len(instances))
    # (heads, N, H / heads) and (heads, C, H / heads)
    own, theirs = (
        F.normalize(vectors.unflatten(1, (heads, -1)).transpose(0, 1), dim=-1)
        for vectors in (instances, label_embeddings)
    )
    logits = own @ theirs.transpose(1, 2) / temperature  # (heads, N, C)
    targets = labels.long().expand(heads, -1)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten()) * heads


def label_centered_loss(
    instances: Tensor, label_embeddings: Tensor, labels: Tensor, temperature: float
) -> Tensor:
    """Contrast each label's instances in the batch with those of other labels (LaCon, Eq. 5).

    The terms -[s_a - log sum over negatives exp s_b] are summed over a label's positives, then
    averaged over the labels present. The denominator contains only negatives, so the loss is often
    far below 0. For a batch of one class the loss is 0.

    Args:
        instances: (N, H).
        label_embeddings: (C, H).
        labels: (N,) classes.
    """
    check_labels(labels, len(instances))
    logits = F.normalize(label_embeddings, dim=-1) @ F.normalize(instances, dim=-1).T / temperature
    own = labels[None] == torch.arange(len(logits), device=labels.device)[:, None]  # (C, N)
    present = own.any(1)
    if int(present.sum()) < 2:
        return zero_loss(instances)
    logits, own = logits[present], own[present]
    others = logits.masked_fill(own, -torch.inf).logsumexp(1, keepdim=True)
    return torch.where(own, others - logits, 0).sum(1).mean()


def lowest_label_centered(targets: Tensor, temperature: float) -> float:
    """Return a lower bound of the loss above for a batch with these labels (N,).

    It has every positive at cosine 1 and every negative at -1:  |A(p)| (log |B(p)| - 2 /
    temperature), averaged over the labels present.
    """
    counts = targets.unique(return_counts=True)[1].double()
    if len(counts) < 2:
        return 0.0
    others = len(targets) - counts
    return float((counts * (others.log() - 2 / temperature)).mean())


def label_embedding_regularizer(label_embeddings: Tensor) -> Tensor:
    """Compute the mean of exp(1 + cosine) - 1 over pairs of different labels (LaCon, Eq. 6).

    It lies between 0 and e^2 - 1 and spreads the labels over the sphere. For one label it is 0.

    Args:
        label_embeddings: (C, H).
    """
    unit = F.normalize(label_embeddings, dim=-1)
    count = len(unit)
    if count < 2:
        return zero_loss(label_embeddings)
    different = ~torch.eye(count, dtype=torch.bool, device=unit.device)
    return torch.expm1(1 + (unit @ unit.T)[different]).mean()
