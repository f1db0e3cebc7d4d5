"""Further methods through TorchJD's weightings, which need the Gram matrix alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multitask.combiners.base import Combined, Setup, Stateless, trivial

Weighting = Callable[[Any], Any]  # Gram matrix (m, m) -> weights (m,), torch tensors
Maker = Callable[[np.ndarray], Weighting]  # from the preference of the objectives drawn


class Gramian(Stateless):
    """A weighting of TorchJD on the Gram matrix divided by its mean diagonal.

    Its solvers have absolute tolerances, which then suit gradients of any size. Weights that are
    not finite, and solvers that give up, end in the plain sum and are counted as such.
    """

    needs_rows = True

    def __init__(self, setup: Setup, make: Maker) -> None:
        self.setup, self.make = setup, make

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        import torch

        if found := trivial(gram):
            return found
        m, scale = len(gram), np.diag(gram).mean()
        weighting = self.make(self.setup.preferences(drawn))
        try:
            solution = weighting(torch.from_numpy((gram + gram.T) / (2 * scale)))
        except (AttributeError, ImportError, NameError):  # a fault of ours or of the installation
            raise
        except Exception as error:  # each solver has failures of its own; never the run's end
            return Combined(np.ones(m), f"summed, for {type(error).__name__}")
        weights = solution.detach().numpy() * m
        if not np.isfinite(weights).all():
            return Combined(np.ones(m), "summed, for weights that are not finite")
        return Combined(weights, "solved")


def preferred(preference: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(preference)


def precise_projector() -> Any:
    """TorchJD's quadratic program with less of a ridge: its own lets objectives get 5 % worse."""
    from torchjd.linalg import QuadprogProjector

    return QuadprogProjector(reg_eps=1e-12)


def cagrad(preference: np.ndarray) -> Weighting:
    """Liu et al., 2021, with the c = 0.4 of their experiments on NYU-v2."""
    from torchjd.aggregation import CAGradWeighting

    return CAGradWeighting(c=0.4)


def upgrad(preference: np.ndarray) -> Weighting:
    """Quinton and Rey, 2024: each gradient projected onto the dual cone of all."""
    from torchjd.aggregation import UPGradWeighting

    return UPGradWeighting(preferred(preference), precise_projector())


def dualproj(preference: np.ndarray) -> Weighting:
    """Lopez-Paz and Ranzato, 2017: the mean gradient projected onto the dual cone."""
    from torchjd.aggregation import DualProjWeighting

    return DualProjWeighting(preferred(preference), precise_projector())


def imtl_g(preference: np.ndarray) -> Weighting:
    """Liu et al., 2021 (IMTL-G): equal projections onto all gradients."""
    from torchjd.aggregation import IMTLGWeighting

    return IMTLGWeighting()


def aligned_mtl(preference: np.ndarray) -> Weighting:
    """Senushkin et al., 2023: principal components brought to one size."""
    from torchjd.aggregation import AlignedMTLWeighting

    return AlignedMTLWeighting(preferred(preference))


def fairgrad(preference: np.ndarray) -> Weighting:
    """Ban and Ji, 2024, with their alpha = 2: the solution of C w = w^(-1/2)."""
    from torchjd.aggregation import FairGradWeighting

    return simplex(FairGradWeighting(alpha=2.0))


def nash_mtl(preference: np.ndarray) -> Weighting:
    """Navon et al., 2022: the bargaining solution C w = 1 / w, each objective's gain its share.

    It is FairGrad's with alpha = 1. TorchJD's own NashMTL stops far from it (after 20 rounds some
    objectives still get worse), so it is not used.
    """
    from torchjd.aggregation import FairGradWeighting

    return simplex(FairGradWeighting(alpha=1.0))


def simplex(weighting: Weighting) -> Weighting:
    """The same direction with weights that add up to 1; the method leaves its length open."""

    def weigh(gram: Any) -> Any:
        weights = weighting(gram)
        return weights / weights.sum()

    return weigh
