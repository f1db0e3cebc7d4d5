"""N-pair loss: one pair per class; each anchor must identify its own positive (Sohn, 2016)."""

from __future__ import annotations

from common.later import F, Tensor, torch
from losses.checks import check_labels
from losses.objectives import ClassObjective
from losses.supcon import zero_loss


def npair_loss(embeddings: Tensor, labels: Tensor, normalize: bool) -> Tensor:
    """Compute the cross-entropy of anchors against all classes' positives (Sohn, 2016, Eq. 6).

    The first two rows of each class are its pair; a class of one row has no pair. Similarities are
    inner products without the paper's penalty on lengths; with `normalize` they are cosines, as in
    pytorch-metric-learning.

    Args:
        embeddings: (N, H).
        labels: (N,) classes.
        normalize: whether to scale the embeddings to unit length first.

    Raises:
        ValueError: for labels of another shape.
    """
    check_labels(labels, len(embeddings))
    vectors = F.normalize(embeddings, dim=-1) if normalize else embeddings
    pairs = [rows[:2] for label in labels.unique() if len(rows := (labels == label).nonzero()) > 1]
    if not pairs:
        return zero_loss(embeddings)
    anchors, positives = torch.stack(pairs).squeeze(-1).T
    logits = vectors[anchors] @ vectors[positives].T
    return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


def every_npair_loss(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Average the N-pair loss over the first pairs of all classes, the second pairs, and so on.

    All pairs of a batch are used (Sohn, 2016, uses one per class). A round in which only one class
    has a pair left is skipped.

    Args:
        embeddings: (N, H).
        labels: (N,) classes.

    Raises:
        ValueError: for labels of another shape.
    """
    check_labels(labels, len(embeddings))
    same = labels[:, None] == labels
    turns = same.tril(-1).sum(1) // 2  # number of pairs of its class before each example
    terms = []
    for turn in turns.unique():
        rows = turns == turn
        if (labels[rows].unique(return_counts=True)[1] > 1).sum() > 1:
            terms.append(npair_loss(embeddings[rows], labels[rows], normalize=False))
    return torch.stack(terms).mean() if terms else zero_loss(embeddings)


class NPair(ClassObjective, name="npair"):
    """Of two texts of each class, the first finds the second (Sohn, 2016)."""

    two_of_each_class = True

    def class_loss(self, embeddings: Tensor, classes: Tensor) -> Tensor:
        # Inner products, as the paper of the loss has them: cosines would be too near each other.
        return every_npair_loss(embeddings, classes)
