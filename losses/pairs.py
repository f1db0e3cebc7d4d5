"""Losses of pairs of embeddings with a label a pair."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def pair_contrastive_loss(u: Tensor, v: Tensor, alike: Tensor, margin: float = 0.5) -> Tensor:
    """Pairs that are alike are pulled together, others pushed apart up to a margin.

    Mean over the pairs of  y d^2 + (1 - y) max(0, margin - d)^2,  halved, with the cosine distance
    d = 1 - cos(u, v) (Hadsell et al., 2006, Eq. 4; the distance and margin as sentence-transformers
    has them for duplicate questions).

    Args:
        u, v: (B, H) embeddings.
        alike: (B,) 1 for pairs that belong together, 0 for others.
    """
    distance = 1 - F.cosine_similarity(u, v)
    alike = alike.to(distance.dtype)
    apart = (margin - distance).clamp(min=0)
    return 0.5 * (alike * distance.square() + (1 - alike) * apart.square()).mean()
