"""How several objectives' gradients become one step; one file a method."""

from __future__ import annotations

from collections.abc import Callable

from multitask.combiners.base import Combined, Combiner
from multitask.combiners.pcgrad import PCGrad, pcgrad_weights
from multitask.combiners.sum import Sum

# name -> maker of a combiner from the run's seed
COMBINERS: dict[str, Callable[[int], Combiner]] = {
    "sum": lambda seed: Sum(),
    "pcgrad": PCGrad,
}

__all__ = ["COMBINERS", "Combined", "Combiner", "pcgrad_weights"]
