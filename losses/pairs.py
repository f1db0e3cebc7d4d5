"""Losses for pairs of embeddings with one label per pair."""

from __future__ import annotations

from common.later import F, Tensor
from losses.checks import check_labels


def pair_contrastive_loss(u: Tensor, v: Tensor, alike: Tensor, margin: float = 0.5) -> Tensor:
    """Pull similar pairs together and push other pairs apart up to a margin.

    Computes half the mean over pairs of  y d^2 + (1 - y) max(0, margin - d)^2,  with the cosine
    distance d = 1 - cos(u, v) (Hadsell et al., 2006, Eq. 4; distance and margin are those of
    sentence-transformers for duplicate questions).

    Args:
        u, v: (B, H) embeddings.
        alike: (B,) 1 for similar pairs, 0 for others.
    """
    check_labels(alike, len(u), "alike")
    distance = 1 - F.cosine_similarity(u, v)
    alike = alike.to(distance.dtype)
    apart = (margin - distance).clamp(min=0)
    return 0.5 * (alike * distance.square() + (1 - alike) * apart.square()).mean()
