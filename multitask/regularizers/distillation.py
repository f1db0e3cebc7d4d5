"""Distillation: outputs and embeddings follow those of teachers, which are trained runs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from losses import soft_divergence
from multitask.regularizers import Distillation
from multitask.regularizers.base import CleanPass, RegularizerState, Term
from tasks.kinds import Kind, Outputs


class DistillationTerm(RegularizerState):
    """share x (loss on the teacher's scores - loss on the labels), so that both add up to a mean.

    With `annealing` the share of the teacher falls from its weight to 0 in equal steps over the
    run, so that the labels have the last word (Clark et al., 2019, section 3, teacher annealing).
    `embeddings` weighs the mean of 1 - cosine of the sentence embeddings of student and teacher.
    """

    def __init__(self, settings: Distillation) -> None:
        self.settings, self.weights = settings, settings.weights

    def __call__(self, clean: CleanPass) -> Term:
        assert clean.soft is not None, "it acts only on tasks with a teacher"
        settings, share = self.settings, self.weights[clean.task.name]
        if settings.annealing:
            share *= 1 - clean.progress
        loss = soft_loss(clean.task.kind, clean.outputs, clean.soft.scores, settings.temperature)
        if clean.soft.embeddings is not None:
            pairs = zip(clean.encoder_pass.texts, clean.soft.embeddings.unbind(1), strict=True)
            cosines = [F.cosine_similarity(text, teacher).mean() for text, teacher in pairs]
            loss = loss + settings.embeddings * (1 - torch.stack(cosines).mean())
        return Term(share * (loss - clean.loss))


def soft_loss(kind: Kind, outputs: Outputs, soft: Tensor, temperature: float) -> Tensor:
    """Return the loss of a head's outputs on the teacher's scores, (B, C) or (B,), a scalar.

    For classes it is the divergence of the probabilities at a temperature. For similarities and
    several labels it is the task's own loss, with the scores in place of the labels.
    """
    if kind.classes is None:
        return kind.loss(outputs, soft)
    return soft_divergence(kind.scores(outputs), soft, temperature)
