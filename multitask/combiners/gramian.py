"""Methods that need only the Gram matrix: MGDA, and those whose weighting TorchJD has."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from common.later import torch
from multitask.combiners.base import ALONE, Combined, Combiner


class MGDA(Combiner, name="mgda"):
    """Shortest vector of the gradients' convex hull (Désidéri, 2012; Sener and Koltun, 2018)."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return its weights, exactly, by non-negative least squares.

        For the rows B, the x >= 0 that minimises |B^T x|^2 + (sum x - 1)^2 is proportional to them.
        """
        from scipy.optimize import nnls

        m, scale = len(gram), np.diag(gram).mean()
        if not scale > 0:
            return Combined(np.full(m, 1 / m) * m, "solved")
        values, vectors = np.linalg.eigh(gram / scale)
        factor = vectors * np.sqrt(np.maximum(values, 0))  # gram = factor @ factor.T
        weights, _ = nnls(np.vstack([factor.T, np.ones(m)]), np.append(np.zeros(m), 1.0))
        return Combined(weights / weights.sum() * m, "solved")


class OfTorchJD(Combiner):
    """A method whose weighting TorchJD has, with these arguments."""

    weighting: ClassVar[str]
    arguments: ClassVar[dict[str, float]] = {}
    projects: ClassVar[bool] = False  # onto the dual cone of the gradients
    any_length: ClassVar[bool] = False  # the method leaves the length of the step open

    def weigh(self, gram: Any) -> Any:
        """Return the weights (m,) of a Gram matrix, tensors."""
        from torchjd import aggregation, linalg

        arguments: dict[str, Any] = {**self.arguments}
        if self.projects:  # the default ridge makes objectives 5 % worse
            arguments["projector"] = linalg.QuadprogProjector(reg_eps=1e-12)
        weights = getattr(aggregation, self.weighting)(**arguments)(gram)
        return weights / weights.sum() if self.any_length else weights

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Apply the weighting to the Gram matrix divided by its mean diagonal.

        The division makes the solvers' absolute tolerances fit gradients of any size. If a solver
        fails, or its weights are not finite, the plain sum is used and the status gives the reason.
        """
        m, scale = len(gram), np.diag(gram).mean()
        if m == 1 or not scale > 0:
            return Combined(np.ones(m), ALONE if m == 1 else "no gradient")
        try:
            solution = self.weigh(torch.from_numpy((gram + gram.T) / (2 * scale)))
        except (AttributeError, ImportError, NameError):  # an error here or in the installation
            raise
        except Exception as error:  # solvers fail in many ways; the run goes on
            return Combined(np.ones(m), f"summed, for {type(error).__name__}")
        weights = solution.detach().numpy() * m
        if not np.isfinite(weights).all():
            return Combined(np.ones(m), "summed, for weights that are not finite")
        return Combined(weights, "solved")


class CAGrad(OfTorchJD, name="cagrad"):
    """CAGrad (Liu et al., 2021), with the c = 0.4 of their experiments on NYU-v2."""

    weighting, arguments = "CAGradWeighting", {"c": 0.4}


class UPGrad(OfTorchJD, name="upgrad"):
    """UPGrad (Quinton and Rey, 2024): each gradient is projected onto the dual cone of all."""

    weighting, projects = "UPGradWeighting", True


class DualProj(OfTorchJD, name="dualproj"):
    """Projection of the mean gradient onto the dual cone (Lopez-Paz and Ranzato, 2017)."""

    weighting, projects = "DualProjWeighting", True


class AlignedMTL(OfTorchJD, name="aligned-mtl"):
    """Aligned-MTL (Senushkin et al., 2023): principal components are scaled to one size."""

    weighting = "AlignedMTLWeighting"


class IMTLG(OfTorchJD, name="imtl-g"):
    """IMTL-G (Liu et al., 2021): equal projections onto all gradients."""

    weighting = "IMTLGWeighting"


class FairGrad(OfTorchJD, name="fairgrad"):
    """FairGrad (Ban and Ji, 2024), with their alpha = 2: the solution of C w = w^(-1/2)."""

    weighting, arguments, any_length = "FairGradWeighting", {"alpha": 2.0}, True


class NashMTL(OfTorchJD, name="nash-mtl"):
    """Nash-MTL (Navon et al., 2022): the bargaining solution C w = 1 / w of the gains C w.

    This equals FairGrad with alpha = 1. TorchJD's own NashMTL is not used, because it stops far
    from the solution (after 20 rounds some objectives still get worse).
    """

    weighting, arguments, any_length = "FairGradWeighting", {"alpha": 1.0}, True
