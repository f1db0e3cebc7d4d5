"""SimCSE: each sentence must identify its second view among those of the batch."""

from __future__ import annotations

from common.later import F, Tensor, torch
from losses.checks import check_labels


def simcse_loss(
    view1: Tensor,
    view2: Tensor,
    temperature: float = 0.05,
    negatives: Tensor | None = None,
    groups: Tensor | None = None,
    negative_groups: Tensor | None = None,
) -> Tensor:
    """Average -log softmax(cos(view1_i, view2_j) / temperature) at j = i over the sentences.

    This is Gao et al. (2021), Eq. 4, with two dropout masks (BEES, Eq. 1, prints one); with
    `negatives` it is their Eq. 5. Only rows of `view1` choose among `view2`, not the reverse.
    Without `negatives`, N = 1 gives 0.

    Args:
        view1, view2: (N, H) two embeddings of each sentence, not normalised.
        temperature: divisor of the cosines.
        negatives: (M, H) further candidates, all of them negatives.
        groups: (N,) integers; sentences of the same group are not negatives of each other. Without
            groups, two copies of a sentence in a batch repel each other.
        negative_groups: (M,) groups of `negatives`, which then repel only other groups' sentences.
    """
    candidates = view2 if negatives is None else torch.cat([view2, negatives])
    logits = F.normalize(view1, dim=-1) @ F.normalize(candidates, dim=-1).T / temperature
    right = torch.arange(len(view1), device=view1.device)
    if groups is not None:
        check_labels(groups, len(view1), "groups")
        same = groups[:, None] == groups
        same[right, right] = False
        if negative_groups is not None:
            same = torch.cat([same, groups[:, None] == negative_groups], dim=1)
        logits[:, : same.shape[1]] = logits[:, : same.shape[1]].masked_fill(same, -torch.inf)
    return F.cross_entropy(logits, right)
