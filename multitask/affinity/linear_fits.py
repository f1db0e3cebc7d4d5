"""Linear models of the losses near a point, and the gains that follow from them.

m tasks; a point is a model of a joint run, with R rounds of one batch per task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SMALLEST = 1e-8  # loss in quotients
RADII = tuple(2.0**power for power in range(-7, 1))  # times the length that fits single tasks
HALVINGS = 50  # of the interval of a ridge's logarithm, which is then exact to rounding
Weights = Sequence[np.ndarray]  # of the rounds (R,) of each point: how often each one counts


@dataclass(frozen=True)
class LinearPoint:
    """Residuals r (R, m) of the batches, and the products (R m, R m) of their gradients.

    A loss of 0 or more is half of a squared residual, r = sqrt(2 L). Its gradient is that of the
    loss divided by r.
    """

    residuals: np.ndarray
    kernel: np.ndarray

    @classmethod
    def of(cls, losses: np.ndarray, sketches: np.ndarray) -> LinearPoint:
        """Return the point of losses (R, m) and sketched gradients (R, m, K)."""
        residuals = np.sqrt(2 * np.maximum(losses, SMALLEST))
        rows = (sketches.astype(np.float64) / residuals[..., None]).reshape(losses.size, -1)
        return cls(residuals, rows @ rows.T)

    def losses(
        self, subsets: np.ndarray, radius: float, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the estimated losses (n, s) after training on each of n subsets.

        The step d, of at most the length `radius`, minimises the sum over the tasks of the mean
        over their batches of (r + J d)^2 / 2. It is fitted to the even rounds and the loss is that
        of the odd ones, and the other way round; the result is the mean.
        """
        weights = np.ones(len(self.residuals)) if weights is None else weights
        found = np.zeros(subsets.shape)
        for fitted, held in self.halves():
            after = self.residuals.T[:, held][subsets]
            after = after + self.changes(subsets, fitted, held, weights[fitted], radius)
            found += after**2 @ (weights[held] / weights[held].sum()) / 4
        return found

    def halves(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return even and odd rounds, and odd and even ones."""
        even, odd = (np.arange(begin, len(self.residuals), 2) for begin in (0, 1))
        return [(even, odd), (odd, even)]

    def changes(
        self,
        subsets: np.ndarray,
        fitted: np.ndarray,
        held: np.ndarray,
        weights: np.ndarray,
        radius: float,
    ) -> np.ndarray:
        """Return the changes J d (n, s, h) of the residuals of the rounds `held`.

        d is computed from products of gradients only (kernel form): d = A' U (e + ridge)^-1 U' y,
        where A has the weighted rows J, y = -r, and A A' = U e U'.
        """
        n, tasks = len(subsets), self.residuals.shape[1]
        rows, others = ((subsets[..., None] + tasks * w).reshape(n, -1) for w in (fitted, held))
        shares = np.tile(np.sqrt(weights / weights.sum()), subsets.shape[1])
        square = self.kernel[rows[:, :, None], rows[:, None, :]] * np.outer(shares, shares)
        values, vectors = np.linalg.eigh(square)
        wanted = np.einsum("nij,ni->nj", vectors, -shares * self.residuals.ravel()[rows])
        rounding = values.shape[1] * np.finfo(np.float64).eps * values[:, -1:]
        values, wanted = (np.where(values > rounding, one, 0) for one in (values, wanted))
        ridges = ridges_of(values, wanted, radius)
        factors = np.einsum("nij,nj->ni", vectors, wanted / (values + ridges[:, None])) * shares
        products = self.kernel[others[:, :, None], rows[:, None, :]]
        return np.einsum("nij,nj->ni", products, factors).reshape(*subsets.shape, len(held))

    def free_length(self) -> float:
        """Return the mean length of the steps that fit half of the rounds of a single task."""
        tasks, lengths = self.residuals.shape[1], []
        for task in range(tasks):
            for fitted, _ in self.halves():
                rows = task + tasks * fitted
                square, wanted = self.kernel[np.ix_(rows, rows)], self.residuals.ravel()[rows]
                squared = wanted @ np.linalg.pinv(square, hermitian=True) @ wanted
                lengths.append(np.sqrt(max(squared, 0.0)))
        return float(np.mean(lengths))


def ridges_of(values: np.ndarray, wanted: np.ndarray, radius: float) -> np.ndarray:
    """Return the smallest ridges (n,) whose solutions have at most the length `radius`.

    The squared length of a solution is the sum of e (w / (e + ridge))^2 over the eigenvalues e
    (n, k), `values`, with the coordinates w (n, k), `wanted`. It falls with the ridge.
    """
    top = np.maximum(values.max(1), SMALLEST)
    # sum e w^2 / ridge^2 bounds the squared length, so that the upper end is short enough.
    upper = np.log(np.maximum(np.sqrt((values * wanted**2).sum(1)) / radius, top))
    lower = np.log(np.finfo(np.float64).eps * top)
    for _ in range(HALVINGS):
        middle = (lower + upper) / 2
        lengths = (values * (wanted / (values + np.exp(middle)[:, None])) ** 2).sum(1)
        long = lengths > radius**2
        lower, upper = np.where(long, middle, lower), np.where(long, upper, middle)
    return np.exp(upper)


@dataclass(frozen=True)
class LinearFits:
    """Gains from linear models of the losses (after Grad-TAG; Li et al., 2024).

    The gain of a task is 1 minus its estimated loss after training on the subset, divided by that
    after training on it only; both are sums over the points. Both steps have the same length at
    most, because AdamW moves about equally far in as many steps, whatever the tasks are.
    """

    points: Sequence[LinearPoint]
    radii: Sequence[float]  # length of the step at each point

    @classmethod
    def fitted(cls, points: Sequence[LinearPoint]) -> LinearFits:
        """Choose the radius with the lowest held-out loss of all tasks trained together.

        The loss is relative to that before. The radius is a multiple, one for all points, of the
        length that fits single tasks.
        """
        every = np.arange(points[0].residuals.shape[1])[None]
        free = [one.free_length() or 1.0 for one in points]

        def ratio(share: float) -> float:
            pairs = zip(points, free, strict=True)
            return float(np.mean([relative(p, p.losses(every, share * one)) for p, one in pairs]))

        share = min(RADII, key=ratio)
        return cls(points, [share * one for one in free])

    def losses(self, subsets: np.ndarray, weights: Weights | None = None) -> np.ndarray:
        """Return the sums over the points of the estimated losses (n, s)."""
        several = weights or [np.ones(len(one.residuals)) for one in self.points]
        found = np.zeros(subsets.shape)
        for point, radius, w in zip(self.points, self.radii, several, strict=True):
            if count := w.mean():  # how often the seed of the point was drawn
                found += count * point.losses(subsets, radius, w)
        return found

    def gains(self, subsets: np.ndarray, weights: Weights | None = None) -> np.ndarray:
        singles = np.arange(self.points[0].residuals.shape[1])[:, None]
        alone = np.maximum(self.losses(singles, weights)[:, 0], SMALLEST)
        return 1 - self.losses(subsets, weights) / alone[subsets]


def relative(point: LinearPoint, losses: np.ndarray) -> float:
    """Return the mean of the losses (1, m) of all tasks, divided by those before."""
    return float(np.mean(losses[0] / ((point.residuals**2).mean(0) / 2)))
