"""Methods that need only the Gram matrix: MGDA, and those whose weighting TorchJD has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from common.later import torch
from multitask.combiners.base import ALONE, Combined, Combiner, WithPreference

Weighting = Callable[[Any], Any]  # Gram matrix (m, m) -> weights (m,), torch tensors


class MGDA(Combiner, name="mgda"):
    """Shortest vector of the gradients' convex hull (Désidéri, 2012; Sener and Koltun, 2018)."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        return Combined(min_norm_weights(gram) * len(gram), "solved")


def min_norm_weights(gram: np.ndarray) -> np.ndarray:
    """Return the weights on the simplex of the shortest vector in the gradients' convex hull.

    The solution is exact, by non-negative least squares: for the rows B, the x >= 0 that minimises
    |B^T x|^2 + (sum x - 1)^2 is proportional to these weights.
    """
    from scipy.optimize import nnls

    scale = np.diag(gram).mean()
    if not scale > 0:
        return np.full(len(gram), 1 / len(gram))
    values, vectors = np.linalg.eigh(gram / scale)
    factor = vectors * np.sqrt(np.maximum(values, 0))  # gram = factor @ factor.T
    target = np.zeros(len(gram) + 1)
    target[-1] = 1
    weights, _ = nnls(np.vstack([factor.T, np.ones(len(gram))]), target)
    return weights / weights.sum()


class OfTorchJD(Combiner):
    """A method whose weighting TorchJD has."""

    def weighting(self, drawn: Sequence[int]) -> Weighting:
        """Return the weighting of the objectives drawn for a step."""
        raise NotImplementedError

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Apply the weighting to the Gram matrix divided by its mean diagonal.

        The division makes the solvers' absolute tolerances fit gradients of any size. If a solver
        fails, or its weights are not finite, the plain sum is used and the status gives the reason.
        """
        m, scale = len(gram), np.diag(gram).mean()
        if m == 1 or not scale > 0:
            return Combined(np.ones(m), ALONE if m == 1 else "no gradient")
        weighting = self.weighting(drawn)
        try:
            solution = weighting(torch.from_numpy((gram + gram.T) / (2 * scale)))
        except (AttributeError, ImportError, NameError):  # an error here or in the installation
            raise
        except Exception as error:  # solvers fail in many ways; the run goes on
            return Combined(np.ones(m), f"summed, for {type(error).__name__}")
        weights = solution.detach().numpy() * m
        if not np.isfinite(weights).all():
            return Combined(np.ones(m), "summed, for weights that are not finite")
        return Combined(weights, "solved")


class WithTensors(OfTorchJD, WithPreference):
    """A method that may prefer some objectives, with the tensor and projector of TorchJD."""

    def tensor(self, drawn: Sequence[int]) -> Any:
        return torch.from_numpy(self.preferences(drawn))

    @staticmethod
    def projector() -> Any:
        """Return the projector with a smaller ridge: the default makes objectives 5 % worse."""
        from torchjd.linalg import QuadprogProjector

        return QuadprogProjector(reg_eps=1e-12)


class CAGrad(OfTorchJD, name="cagrad"):
    """CAGrad (Liu et al., 2021), with the c = 0.4 of their experiments on NYU-v2."""

    def weighting(self, drawn: Sequence[int]) -> Weighting:
        from torchjd.aggregation import CAGradWeighting

        return CAGradWeighting(c=0.4)


class UPGrad(WithTensors, name="upgrad"):
    """UPGrad (Quinton and Rey, 2024): each gradient is projected onto the dual cone of all."""

    def weighting(self, drawn: Sequence[int]) -> Weighting:
        from torchjd.aggregation import UPGradWeighting

        return UPGradWeighting(self.tensor(drawn), self.projector())


class DualProj(WithTensors, name="dualproj"):
    """Projection of the mean gradient onto the dual cone (Lopez-Paz and Ranzato, 2017)."""

    def weighting(self, drawn: Sequence[int]) -> Weighting:
        from torchjd.aggregation import DualProjWeighting

        return DualProjWeighting(self.tensor(drawn), self.projector())


class AlignedMTL(WithTensors, name="aligned-mtl"):
    """Aligned-MTL (Senushkin et al., 2023): principal components are scaled to one size."""

    def weighting(self, drawn: Sequence[int]) -> Weighting:
        from torchjd.aggregation import AlignedMTLWeighting

        return AlignedMTLWeighting(self.tensor(drawn))


class IMTLG(OfTorchJD, name="imtl-g"):
    """IMTL-G (Liu et al., 2021): equal projections onto all gradients."""

    def weighting(self, drawn: Sequence[int]) -> Weighting:
        from torchjd.aggregation import IMTLGWeighting

        return IMTLGWeighting()


class FairGrad(OfTorchJD, name="fairgrad"):
    """FairGrad (Ban and Ji, 2024), with their alpha = 2: the solution of C w = w^(-1/2)."""

    alpha: ClassVar[float] = 2.0

    def weighting(self, drawn: Sequence[int]) -> Weighting:
        from torchjd.aggregation import FairGradWeighting

        weigh = FairGradWeighting(alpha=self.alpha)

        def simplex(gram: Any) -> Any:  # the method leaves the length of the step open
            weights = weigh(gram)
            return weights / weights.sum()

        return simplex


class NashMTL(FairGrad, name="nash-mtl"):
    """Nash-MTL (Navon et al., 2022): the bargaining solution C w = 1 / w of the gains C w.

    This equals FairGrad with alpha = 1. TorchJD's own NashMTL is not used, because it stops far
    from the solution (after 20 rounds some objectives still get worse).
    """

    alpha = 1.0
