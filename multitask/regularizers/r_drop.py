"""R-Drop: two passes with different dropout should agree (Liang et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping

from multitask.regularizers.base import CleanPass, RegularizerState, Term


class RDropTerm(RegularizerState):
    """Mean loss of both passes plus weight x half their divergence, in place of the loss.

    With several sizes of embeddings, only the complete size, which is one of n, has two passes.

    This follows the authors' code. Their Eq. 4 adds the losses of both passes, so that a weight w
    here is alpha = 2 w there. Similarities use the squared difference, not the symmetric KL.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = weights

    def __call__(self, clean: CleanPass) -> Term:
        again, outputs = clean.another_pass(clean.batch)
        first = clean.task.objectives[0]
        other = clean.task.compute_losses(outputs, again.texts, clean.targets)[first]
        divergence = clean.divergence(outputs, clean.outputs)
        weight = self.weights[clean.task.name]
        half = 2 * len(clean.model.sizes)  # the loss itself is divided by n, too
        return Term((other - clean.loss) / half + weight * divergence / 2, [again])
