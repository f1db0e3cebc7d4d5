"""Numbers of the objectives that classification tasks may have instead of cross-entropy.

No torch is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from minbert.errors import UserError

if TYPE_CHECKING:
    from tasks.base import Task

TERMS = ("icl", "lcl", "ler")  # of LaCon's loss


@dataclass(frozen=True)
class ObjectiveSettings:
    """Contrastive terms beside cross-entropy, and LaCon's; `preference` is of pull and push.

    Defaults of the first three: Moukafih et al. (2022), section 4.1. Of the others: Zhang et al.
    (2022), section 4.4, within the ranges that it recommends.
    """

    temperature: float = 0.3
    weight: float = 0.3
    preference: tuple[float, float] = (0.1, 0.9)
    label_temperature: float = 0.1
    label_heads: int | None = None  # the paper's six, or as many fewer as fit the width
    label_spread: float = 0.5  # weight of LaCon's regulariser
    label_terms: tuple[str, ...] = TERMS
    projection_layers: int = 3


def check_one_vector(task: Task, objective: str) -> None:
    """UserError for a task whose examples have an embedding a text."""
    if task.vectors > 1:
        raise UserError(
            f"--objective {objective}: expected single texts, or pairs in one sequence, found "
            f"{task.name}"
        )
