"""Methods that use TorchJD's weightings, which need only the Gram matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from common.later import torch
from multitask.combiners.base import Combined, Combiner, WithPreference, preferences, trivial

Weighting = Callable[[Any], Any]  # Gram matrix (m, m) -> weights (m,), torch tensors


def solved(gram: np.ndarray, make: Callable[[], Weighting]) -> Combined:
    """Apply a weighting of TorchJD to the Gram matrix divided by its mean diagonal.

    The division makes the solvers' absolute tolerances fit gradients of any size. If a solver fails
    or returns weights that are not finite, the plain sum is used and the status gives the reason.
    """
    if found := trivial(gram):
        return found
    m, scale = len(gram), np.diag(gram).mean()
    weighting = make()
    try:
        solution = weighting(torch.from_numpy((gram + gram.T) / (2 * scale)))
    except (AttributeError, ImportError, NameError):  # an error in this module or the installation
        raise
    except Exception as error:  # solvers fail in many ways; the run goes on
        return Combined(np.ones(m), f"summed, for {type(error).__name__}")
    weights = solution.detach().numpy() * m
    if not np.isfinite(weights).all():
        return Combined(np.ones(m), "summed, for weights that are not finite")
    return Combined(weights, "solved")


def tensor(preference: Sequence[float] | None, drawn: Sequence[int]) -> Any:
    """Return the preference of the objectives drawn for a step, as a tensor for TorchJD."""
    return torch.from_numpy(preferences(preference, drawn))


def precise_projector() -> Any:
    """Return TorchJD's projector with a smaller ridge: the default makes objectives 5 % worse."""
    from torchjd.linalg import QuadprogProjector

    return QuadprogProjector(reg_eps=1e-12)


class CAGrad(Combiner, name="cagrad"):
    """CAGrad (Liu et al., 2021), with the c = 0.4 of their experiments on NYU-v2."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import CAGradWeighting

        return solved(gram, lambda: CAGradWeighting(c=0.4))


class UPGrad(WithPreference, name="upgrad"):
    """UPGrad (Quinton and Rey, 2024): each gradient is projected onto the dual cone of all."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import UPGradWeighting

        preference = tensor(self.preference, drawn)
        return solved(gram, lambda: UPGradWeighting(preference, precise_projector()))


class DualProj(WithPreference, name="dualproj"):
    """Projection of the mean gradient onto the dual cone (Lopez-Paz and Ranzato, 2017)."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import DualProjWeighting

        preference = tensor(self.preference, drawn)
        return solved(gram, lambda: DualProjWeighting(preference, precise_projector()))


class IMTLG(Combiner, name="imtl-g"):
    """IMTL-G (Liu et al., 2021): equal projections onto all gradients."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import IMTLGWeighting

        return solved(gram, IMTLGWeighting)


class AlignedMTL(WithPreference, name="aligned-mtl"):
    """Aligned-MTL (Senushkin et al., 2023): principal components are scaled to one size."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import AlignedMTLWeighting

        preference = tensor(self.preference, drawn)
        return solved(gram, lambda: AlignedMTLWeighting(preference))


class FairGrad(Combiner, name="fairgrad"):
    """FairGrad (Ban and Ji, 2024), with their alpha = 2: the solution of C w = w^(-1/2)."""

    alpha: ClassVar[float] = 2.0

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import FairGradWeighting

        return solved(gram, lambda: simplex(FairGradWeighting(alpha=self.alpha)))


class NashMTL(FairGrad, name="nash-mtl"):
    """Nash-MTL (Navon et al., 2022): the bargaining solution C w = 1 / w of the gains C w.

    This equals FairGrad with alpha = 1. TorchJD's own NashMTL is not used, because it stops far
    from the solution (after 20 rounds some objectives still get worse).
    """

    alpha = 1.0


def simplex(weighting: Weighting) -> Weighting:
    """Divide the weights by their sum; the method leaves the length of the step open."""

    def weigh(gram: Any) -> Any:
        weights = weighting(gram)
        return weights / weights.sum()

    return weigh
