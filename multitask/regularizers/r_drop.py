"""R-Drop: two passes with different dropout are to agree (Liang et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping

from multitask.regularizers.base import Clean, Stateless, Term


class RDropTerm(Stateless):
    """The loss becomes the mean of both passes' plus weight x half their divergence.

    As the authors' code has it; their Eq. 4 adds both passes' losses up, so that a weight w here is
    alpha = 2 w there. For similarities the squared difference stands in the symmetric KL's place.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = weights

    def __call__(self, clean: Clean) -> Term:
        again, outputs = clean.another_pass(clean.batch)
        first = clean.task.objectives[0]
        other = clean.task.losses(outputs, again.texts, clean.targets)[first]
        divergence = clean.divergence(outputs, clean.outputs)
        weight = self.weights[clean.task.name]
        return Term((other - clean.loss) / 2 + weight * divergence / 2, [again])
