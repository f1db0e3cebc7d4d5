"""SimCSE: every sentence is to find its other view among those of the batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def simcse_loss(
    view1: Tensor,
    view2: Tensor,
    temperature: float = 0.05,
    negatives: Tensor | None = None,
    groups: Tensor | None = None,
    negative_groups: Tensor | None = None,
) -> Tensor:
    """Mean over the sentences of -log softmax(cos(view1_i, view2_j) / temperature) at j = i.

    Gao et al. (2021), Eq. 4, with two dropout masks where BEES' Eq. 1 prints one; with `negatives`
    their Eq. 5. One direction only: rows of `view1` choose among `view2`. N = 1 gives 0.

    Args:
        view1, view2: (N, H) two embeddings of each sentence, not normalised.
        temperature: what cosines are divided by.
        negatives: (M, H) further candidates, none of which is right.
        groups: (N,) integers; a sentence of the same group is no negative. Without them a
            sentence that is twice in the batch pushes itself away.
        negative_groups: (M,) the same of `negatives`, each of which is then a negative of the
            sentences of other groups alone.
    """
    candidates = view2 if negatives is None else torch.cat([view2, negatives])
    logits = F.normalize(view1, dim=-1) @ F.normalize(candidates, dim=-1).T / temperature
    right = torch.arange(len(view1), device=view1.device)
    if groups is not None:
        same = groups[:, None] == groups
        same[right, right] = False
        if negative_groups is not None:
            same = torch.cat([same, groups[:, None] == negative_groups], dim=1)
        logits[:, : same.shape[1]] = logits[:, : same.shape[1]].masked_fill(same, -torch.inf)
    return F.cross_entropy(logits, right)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 0.5
) -> Tensor:
    """Mean of max(0, cos(anchor, negative) - cos(anchor, positive) + margin).

    Each anchor has one positive and one negative of its own (Schroff et al., 2015, Eq. 2, with
    cosines as in Reimers and Gurevych, 2019, for similarity).

    Args:
        anchor, positive, negative: (N, H).
    """
    near, far = F.cosine_similarity(anchor, positive), F.cosine_similarity(anchor, negative)
    return (far - near + margin).clamp(min=0).mean()
