"""Objectives of one task combined among themselves, then the tasks; on the Gram matrix alone.

A task that pulls, pushes and classifies (SCL-MOO) has three objectives: EPO balances the
contrastive two, cross-entropy stays outside. The mixture of them is what another combiner sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from multitask.combiners.base import Combined, Running, Setup
from multitask.combiners.epo import epo_solution
from tasks import PULL_PUSH, task_and_term

LOWEST = 1e-9  # of an objective that EPO sees: batches may fall below the ideal point
VERTEX = 1 - 1e-6  # of a weight: the other objective has no say


@dataclass(frozen=True)
class PullPush:
    """How cross-entropy, pull and push of one task become one gradient.

    Moukafih et al. (2022), Algorithm 1:  (1 - weight) CE + weight (b_1 pull + b_2 push),  with b
    by EPO for the preference r. The first objective is (1 - weight) CE, so that the head has its
    share of it, too. `contrastive` inputs of EPO are pull and push, as Algorithm 1 has it;
    `combined` ones contain cross-entropy, as Eq. 4 and 5 do. b adds up to 1, not to m, or
    cross-entropy's share would change.
    """

    weight: float
    preference: tuple[float, float]
    inputs: str = "contrastive"

    def __call__(self, gram: np.ndarray, losses: np.ndarray) -> Combined:
        """Gram matrix (3, 3) and losses (3,) -> weights (3,).

        Of (1 - weight) CE, and of pull and push above their ideal points.
        """
        share = self.weight
        if self.inputs == "combined":
            mixtures = np.array([[1, share, 0], [1, 0, share]])
        else:
            mixtures = np.array([[0.0, 1, 0], [0, 0, 1]])
        if (np.diag(gram)[1:] > 0).all():
            seen = mixtures @ losses
            both, status = epo_solution(
                mixtures @ gram @ mixtures.T, np.maximum(seen, LOWEST), self.preference
            )
            if seen.min() < LOWEST:
                status = f"{status}, below an ideal point"
            if both.max() > VERTEX:
                status = f"{status}, at a vertex"
        else:  # a batch of one class, or of single examples: what there is moves as it is preferred
            both, status = np.array(self.preference), "pull or push undefined"
        return Combined(np.array([1, *(share * both)]), status)


class Nested:
    """`within` combines a task's objectives where they are the three, `tasks` what comes of it."""

    needs_rows = True

    def __init__(self, setup: Setup, tasks: Running, within: PullPush) -> None:
        self.tasks, self.within = tasks, within
        self.known = [task_and_term(name) for name in setup.objectives]
        self.names = list(dict.fromkeys(task for task, _ in self.known))

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        seen = [self.known[one] for one in drawn]
        names = list(dict.fromkeys(task for task, _ in seen))
        mixtures, statuses = np.zeros((len(names), len(drawn))), []
        for row, name in enumerate(names):
            mine = [place for place, (task, _) in enumerate(seen) if task == name]
            if tuple(seen[place][1] for place in mine) == PULL_PUSH:
                found = self.within(gram[np.ix_(mine, mine)], losses[mine])
                mixtures[row, mine] = found.weights
                statuses.append(found.status)
            else:
                mixtures[row, mine] = 1
        whole = self.tasks.combine(
            mixtures @ gram @ mixtures.T,
            np.maximum(mixtures @ losses, LOWEST),
            [self.names.index(name) for name in names],
        )
        if len(names) > 1 or not statuses:
            statuses.append(whole.status)
        return Combined(whole.weights @ mixtures, "; ".join(statuses))

    def state_dict(self) -> dict[str, Any]:
        return self.tasks.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.tasks.load_state_dict(state)
