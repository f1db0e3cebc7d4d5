"""Greedy selection of an ensemble from a pool of models (Caruana et al., 2004)."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import numpy as np

from ensemble.average import average

ROUNDS = 25


def greedy_selection(
    scores: np.ndarray, score: Callable[[np.ndarray], float], rounds: int = ROUNDS
) -> list[int]:
    """Return the models of (M, N, ...) whose mean has the best score, with repetitions.

    Selection starts with the best single model and adds, with replacement, the model that gives the
    best score (Caruana et al., 2004, sections 2 and 2.2), the first in a tie. The best ensemble of
    all rounds is returned, the smallest in a tie; it never scores below its best member.
    """
    chosen: list[int] = []
    best: list[int] = []
    best_score = -np.inf
    total = np.zeros(scores.shape[1:])
    for _ in range(rounds):
        values = [score((total + one) / (len(chosen) + 1)) for one in scores.astype(np.float64)]
        winner = int(np.argmax(values))
        chosen.append(winner)
        total = total + scores[winner]
        if values[winner] > best_score:
            best, best_score = list(chosen), values[winner]
    return best


def selected(scores: np.ndarray, chosen: list[int]) -> np.ndarray:
    """Return the mean of the chosen models in float64."""
    return average([scores[model] for model in chosen])


def halves(ids: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the examples in halves by their ids, independent of their order; return the rows."""
    order = np.array(
        sorted(range(len(ids)), key=lambda row: (crc32(f"{seed} {ids[row]}".encode()), ids[row]))
    )
    middle = (len(ids) + 1) // 2
    return np.sort(order[:middle]), np.sort(order[middle:])
