"""What goes into a step and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from multitask.combiners import Combined
from multitask.errors import NotFiniteError

Batches = Mapping[str, Sequence[np.ndarray]]  # task -> rows of its batches in a step


@dataclass(frozen=True)
class StepResult:
    """What a step computed: m objectives, their losses (m,), weights, and Gram matrices (m, m).

    `grams` has one for each section of the model, or one at the `representation`; it is empty where
    the gradients were added up without keeping them apart.
    """

    objectives: tuple[str, ...]
    losses: np.ndarray
    combined: Combined
    grams: Mapping[str, np.ndarray]
    examples: int


def examples_of(batches: Batches) -> int:
    return sum(len(indices) for several in batches.values() for indices in several)


def check_finite(what: str, values: Iterable[float], names: Sequence[str]) -> None:
    for name, value in zip(names, values, strict=True):
        if not np.isfinite(value):
            raise NotFiniteError(
                f"expected a finite {what} of {name}, found {value}; "
                "a new run with a lower --lr, --head-lr or --clip may help"
            )
