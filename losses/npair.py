"""N-pair loss: one pair a class, every anchor finds its own positive (Sohn, 2016)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from losses.supcon import nothing


def npair_loss(embeddings: Tensor, labels: Tensor, normalize: bool) -> Tensor:
    """Cross-entropy of anchors against the positives of all classes (Sohn, 2016, Eq. 6).

    The first two rows of each class are its pair; a class of one has none. Inner products, without
    the paper's penalty on lengths; `normalize` makes them cosines, as the usual library does.
    """
    vectors = F.normalize(embeddings, dim=-1) if normalize else embeddings
    pairs = [rows[:2] for label in labels.unique() if len(rows := (labels == label).nonzero()) > 1]
    if not pairs:
        return nothing(embeddings)
    anchors, positives = torch.stack(pairs).squeeze(-1).T
    logits = vectors[anchors] @ vectors[positives].T
    return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


def every_npair_loss(embeddings: Tensor, labels: Tensor, normalize: bool) -> Tensor:
    """The same of the first two of each class, of the next two, and so on; their mean.

    A batch of many examples a class is used as a whole. A turn in which only one class has two
    examples left has nothing to tell apart, and does not count.
    """
    same = labels[:, None] == labels
    turns = same.tril(-1).sum(1) // 2  # of the examples of its class before each
    terms = []
    for turn in turns.unique():
        rows = turns == turn
        if (labels[rows].unique(return_counts=True)[1] > 1).sum() > 1:
            terms.append(npair_loss(embeddings[rows], labels[rows], normalize))
    return torch.stack(terms).mean() if terms else nothing(embeddings)
