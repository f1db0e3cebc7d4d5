"""LaCon: labels have embeddings, which are contrasted with instances (Zhang et al., 2022).

N instances, C labels, H their width, m heads. All vectors are normalised here.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from losses.supcon import nothing


def instance_centered_loss(
    instances: Tensor,
    label_embeddings: Tensor,
    labels: Tensor,
    temperature: float,
    heads: int = 1,
) -> Tensor:
    """Every instance finds its label among all C: InfoNCE of cosines (LaCon, Eq. 3 and 4).

    With several heads the vectors are cut into as many slices of like width, each normalised by
    itself, and the heads' losses are added up, not averaged.

    Args:
        instances: (N, H).
        label_embeddings: (C, H).
        labels: (N,) classes.
    """
    width = instances.shape[1]
    if width % heads:
        raise ValueError(f"heads: expected a divisor of the width {width}, found {heads}")
    # (heads, N, H / heads) and (heads, C, H / heads)
    own, theirs = (
        F.normalize(vectors.unflatten(1, (heads, -1)).transpose(0, 1), dim=-1)
        for vectors in (instances, label_embeddings)
    )
    logits = own @ theirs.transpose(1, 2) / temperature  # (heads, N, C)
    targets = labels.expand(heads, -1)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten()) * heads


def label_centered_loss(
    instances: Tensor, label_embeddings: Tensor, labels: Tensor, temperature: float
) -> Tensor:
    """Every label of the batch finds its instances among those of others (LaCon, Eq. 5).

    Of a label's positives the terms -[s_a - log sum over negatives exp s_b] are added up, then
    averaged over the labels present. The denominator has negatives alone, so that it is often far
    below 0. In a batch of one class it is 0.
    """
    logits = F.normalize(label_embeddings, dim=-1) @ F.normalize(instances, dim=-1).T / temperature
    own = labels[None] == torch.arange(len(logits), device=labels.device)[:, None]  # (C, N)
    present = own.any(1)
    if int(present.sum()) < 2:
        return nothing(instances)
    logits, own = logits[present], own[present]
    others = logits.masked_fill(own, -torch.inf).logsumexp(1, keepdim=True)
    return torch.where(own, others - logits, 0).sum(1).mean()


def label_embedding_regularizer(label_embeddings: Tensor) -> Tensor:
    """Mean of exp(1 + cosine) - 1 over pairs of different labels: 0 to e^2 - 1 (LaCon, Eq. 6).

    It spreads the labels over the sphere. A single label has none.
    """
    unit = F.normalize(label_embeddings, dim=-1)
    count = len(unit)
    if count < 2:
        return nothing(label_embeddings)
    different = ~torch.eye(count, dtype=torch.bool, device=unit.device)
    return torch.expm1(1 + (unit @ unit.T)[different]).mean()
