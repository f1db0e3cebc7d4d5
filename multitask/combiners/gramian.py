"""Further methods through TorchJD's weightings, which need the Gram matrix alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from multitask.combiners.base import (
    Combined,
    Combiner,
    WithPreference,
    preferences,
    trivial,
)

Weighting = Callable[[Any], Any]  # Gram matrix (m, m) -> weights (m,), torch tensors


def solved(gram: np.ndarray, make: Callable[[], Weighting]) -> Combined:
    """A weighting of TorchJD on the Gram matrix divided by its mean diagonal.

    Its solvers have absolute tolerances, which then suit gradients of any size. Weights that are
    not finite, and solvers that give up, end in the plain sum and are counted as such.
    """
    import torch

    if found := trivial(gram):
        return found
    m, scale = len(gram), np.diag(gram).mean()
    weighting = make()
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


def tensor(wish: Sequence[float] | None, drawn: Sequence[int]) -> Any:
    """The preference of the objectives drawn for a step, as TorchJD takes it."""
    import torch

    return torch.from_numpy(preferences(wish, drawn))


def precise_projector() -> Any:
    """TorchJD's quadratic program with less of a ridge: its own lets objectives get 5 % worse."""
    from torchjd.linalg import QuadprogProjector

    return QuadprogProjector(reg_eps=1e-12)


class CAGrad(Combiner, name="cagrad"):
    """Liu et al., 2021, with the c = 0.4 of their experiments on NYU-v2."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import CAGradWeighting

        return solved(gram, lambda: CAGradWeighting(c=0.4))


class UPGrad(WithPreference, name="upgrad"):
    """Quinton and Rey, 2024: each gradient projected onto the dual cone of all."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import UPGradWeighting

        wish = tensor(self.preference, drawn)
        return solved(gram, lambda: UPGradWeighting(wish, precise_projector()))


class DualProj(WithPreference, name="dualproj"):
    """Lopez-Paz and Ranzato, 2017: the mean gradient projected onto the dual cone."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import DualProjWeighting

        wish = tensor(self.preference, drawn)
        return solved(gram, lambda: DualProjWeighting(wish, precise_projector()))


class IMTLG(Combiner, name="imtl-g"):
    """Liu et al., 2021 (IMTL-G): equal projections onto all gradients."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import IMTLGWeighting

        return solved(gram, IMTLGWeighting)


class AlignedMTL(WithPreference, name="aligned-mtl"):
    """Senushkin et al., 2023: principal components brought to one size."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import AlignedMTLWeighting

        wish = tensor(self.preference, drawn)
        return solved(gram, lambda: AlignedMTLWeighting(wish))


class FairGrad(Combiner, name="fairgrad"):
    """Ban and Ji, 2024, with their alpha = 2: the solution of C w = w^(-1/2)."""

    alpha: ClassVar[float] = 2.0

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from torchjd.aggregation import FairGradWeighting

        return solved(gram, lambda: simplex(FairGradWeighting(alpha=self.alpha)))


class NashMTL(FairGrad, name="nash-mtl"):
    """Navon et al., 2022: the bargaining solution C w = 1 / w, each objective's gain its share.

    It is FairGrad's with alpha = 1. TorchJD's own NashMTL stops far from it (after 20 rounds some
    objectives still get worse), so it is not used.
    """

    alpha = 1.0


def simplex(weighting: Weighting) -> Weighting:
    """The same direction with weights that add up to 1; the method leaves its length open."""

    def weigh(gram: Any) -> Any:
        weights = weighting(gram)
        return weights / weights.sum()

    return weigh
