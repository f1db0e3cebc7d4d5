"""Triplet loss of the classes of a batch (Schroff et al., 2015)."""

from __future__ import annotations

from common.later import F, Tensor, torch
from common.settings import Positive, setting
from losses.checks import check_labels, zero_loss
from losses.objectives import ClassObjective


def triplet_loss(
    embeddings: Tensor,
    labels: Tensor,
    margin: float,
    power: int = 1,
    normalize: bool = True,
    reduction: str = "active",
) -> Tensor:
    """Average max(0, d(a, p) - d(a, n) + margin) over triplets (Schroff et al., 2015, Eq. 3).

    d is the Euclidean distance to the `power`. `active` averages over the triplets that violate the
    margin, as pytorch-metric-learning does; `all` over all. If there are none, the loss is 0.

    The result is exact, without enumerating triplets: for each anchor and positive, the negatives
    nearer than d(a, p) + margin are a prefix of the anchor's sorted distances. The memory is O(N^2)
    instead of O(N^3).

    Args:
        embeddings: (N, H).
        labels: (N,) classes.
        margin: in units of d.
        power: 1, or 2 for squared distances.
        normalize: whether to scale the embeddings to unit length first.
        reduction: `active` or `all`.
    """
    if reduction not in ("active", "all"):
        raise ValueError(f"reduction: expected active or all, found {reduction!r}")
    check_labels(labels, len(embeddings))
    vectors = F.normalize(embeddings, dim=-1) if normalize else embeddings
    # Not by inner products: their rounding makes distances of similar vectors wrong.
    distances = torch.cdist(vectors, vectors, 2.0, "donot_use_mm_for_euclid_dist") ** power
    same = labels[:, None] == labels
    positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    triplets = (positive.sum(1) * (~same).sum(1)).sum()
    if not triplets:
        return zero_loss(embeddings)
    ordered = distances.masked_fill(same, torch.inf).sort(1).values
    sums = F.pad(ordered.masked_fill(ordered.isinf(), 0).cumsum(1), (1, 0))
    reach = distances + margin
    nearer = torch.searchsorted(ordered.detach(), reach.detach())  # negatives below the reach
    # Indexing, as the gradient of `gather` adds in any order on a GPU.
    rows = torch.arange(len(labels), device=labels.device)[:, None]
    terms = torch.where(positive, nearer * reach - sums[rows, nearer], 0)
    active = (nearer * positive).sum()
    return terms.sum() / (triplets if reduction == "all" else active.clamp(min=1))


class ClassTriplet(ClassObjective, name="class-triplet"):
    """Bring each text nearer to its class than to other classes, by a margin."""

    margin: Positive = setting(0.5, help="margin in distances", source="our choice", flag=False)

    def class_loss(self, embeddings: Tensor, classes: Tensor) -> Tensor:
        return triplet_loss(embeddings, classes, self.margin)
