"""N-pair loss: one pair per class; each anchor must identify its own positive (Sohn, 2016)."""

from __future__ import annotations

from common.later import F, Tensor, torch
from losses.checks import check_labels, zero_loss
from losses.objectives import ClassObjective


def npair_loss(embeddings: Tensor, labels: Tensor, normalize: bool) -> Tensor:
    """Compute the cross-entropy of anchors against all classes' positives (Sohn, 2016, Eq. 6).

    The first two rows of each class are its pair; a class of one row has no pair. Similarities are
    inner products without the paper's penalty on lengths; with `normalize` they are cosines, as in
    pytorch-metric-learning.

    Args:
        embeddings: (N, H).
        labels: (N,) classes.
        normalize: whether to scale the embeddings to unit length first.
    """
    check_labels(labels, len(embeddings))
    vectors = F.normalize(embeddings, dim=-1) if normalize else embeddings
    pairs = [rows[:2] for label in labels.unique() if len(rows := (labels == label).nonzero()) > 1]
    if not pairs:
        return zero_loss(embeddings)
    anchors, positives = torch.stack(pairs).squeeze(-1).T
    logits = vectors[anchors] @ vectors[positives].T
    return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


class NPair(ClassObjective, name="npair"):
    """Match two texts of each class in a batch (Sohn, 2016).

    All pairs of a batch are used, where Sohn uses one of each class: the loss is averaged over the
    first pairs of all classes, the second pairs, and so on. Inner products are not normalised, as
    in the paper: cosines would be too near each other.
    """

    def class_loss(self, embeddings: Tensor, classes: Tensor) -> Tensor:
        same = classes[:, None] == classes
        turns = same.tril(-1).sum(1) // 2  # number of pairs of its class before each example
        terms = []
        for turn in turns.unique():
            rows = turns == turn
            if (classes[rows].unique(return_counts=True)[1] > 1).sum() > 1:
                terms.append(npair_loss(embeddings[rows], classes[rows], normalize=False))
        return torch.stack(terms).mean() if terms else zero_loss(embeddings)
