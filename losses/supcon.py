"""Supervised contrastive loss (Khosla et al., 2020; for fine-tuning: Gunel et al., 2021)."""

from __future__ import annotations

from common.later import F, Tensor, torch
from common.settings import Positive, setting
from losses.checks import check_labels, zero_loss
from losses.objectives import TEMPERATURE, TEMPERATURE_HELP, ClassObjective


def supcon_loss(
    embeddings: Tensor, labels: Tensor, temperature: float, reduction: str = "mean"
) -> Tensor:
    """Compute the loss in which each example must identify its class among the rest of the batch.

    The term of anchor i with positives P(i) is -1/|P(i)| sum_p [s_ip - log sum_{k != i} exp s_ik],
    s = cosine / temperature (Khosla et al., Eq. 2, L_out; Gunel et al., Eq. 3). An anchor without a
    positive has no term; without any term the loss is 0 with a zero gradient.

    Args:
        embeddings: (N, H), normalised here.
        labels: (N,) classes.
        reduction: `mean` over the anchors that have a positive, or `sum`, as both papers print it.
    """
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction: expected mean or sum, found {reduction!r}")
    check_labels(labels, len(embeddings))
    unit = F.normalize(embeddings, dim=-1)
    logits = unit @ unit.T / temperature
    itself = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    positive = (labels[:, None] == labels) & ~itself
    counts = positive.sum(1)
    if not positive.any():
        return zero_loss(embeddings)
    all_others = logits.masked_fill(itself, -torch.inf).logsumexp(1)
    nearness = torch.where(positive, logits, 0).sum(1) / counts.clamp(min=1)
    terms = (all_others - nearness)[counts > 0]
    return terms.mean() if reduction == "mean" else terms.sum()


class SupCon(ClassObjective, name="supcon"):
    """Pull texts of the same class together (Khosla et al., 2020)."""

    contrast_temperature: Positive = setting(TEMPERATURE, **TEMPERATURE_HELP, flag=False)

    def class_loss(self, embeddings: Tensor, classes: Tensor) -> Tensor:
        return supcon_loss(embeddings, classes, self.contrast_temperature)
