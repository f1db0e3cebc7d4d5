"""How several objectives' gradients become one step; one file a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from multitask.combiners import gramian
from multitask.combiners.base import ALONE, Combined, Combiner, Scaled, Setup
from multitask.combiners.epo import EPO, epo_weights
from multitask.combiners.mgda import MGDA
from multitask.combiners.nested import Nested, PullPush
from multitask.combiners.pareto_mtl import ParetoMTL
from multitask.combiners.pcgrad import PCGrad, pcgrad_weights
from multitask.combiners.sum import LinearScalarization, Sum
from multitask.combiners.uncertainty import Uncertainty
from tasks import task_and_term

if TYPE_CHECKING:
    from multitask.config import RunConfig

COMBINERS: dict[str, Callable[[Setup], Combiner]] = {
    "sum": Sum,
    "linear": LinearScalarization,
    "pcgrad": PCGrad,
    "epo": EPO,
    "pareto-mtl": ParetoMTL,
    "uncertainty": Uncertainty,
    "mgda": MGDA,
    "cagrad": partial(gramian.Gramian, make=gramian.cagrad),
    "upgrad": partial(gramian.Gramian, make=gramian.upgrad),
    "dualproj": partial(gramian.Gramian, make=gramian.dualproj),
    "imtl-g": partial(gramian.Gramian, make=gramian.imtl_g),
    "aligned-mtl": partial(gramian.Gramian, make=gramian.aligned_mtl),
    "fairgrad": partial(gramian.Gramian, make=gramian.fairgrad),
    "nash-mtl": partial(gramian.Gramian, make=gramian.nash_mtl),
}
# Those that a --preference means something to, and those that need each of its numbers positive.
PREFERRING = ("linear", "epo", "pareto-mtl", "upgrad", "dualproj", "aligned-mtl")
POSITIVE = ("epo", "pareto-mtl")
ONE_AT_A_TIME = ("sum", "linear", "uncertainty")  # mean something for a single objective, too


def build_combiner(config: RunConfig, objectives: tuple[str, ...]) -> Combiner:
    """The combiner of a configuration, for a run's objectives in their order."""
    setup = Setup(objectives, config.seed, config.preference, config.cones)
    if config.objective == "epo":
        tasks = tuple(dict.fromkeys(task_and_term(name)[0] for name in objectives))
        within = PullPush(config.scl_weight, config.scl_preference, config.scl_inputs)
        return Nested(setup, COMBINERS[config.combiner](replace(setup, objectives=tasks)), within)
    combiner = COMBINERS[config.combiner](setup)
    return Scaled(combiner, config.loss_sizes) if config.loss_sizes else combiner


__all__ = [
    "ALONE",
    "COMBINERS",
    "ONE_AT_A_TIME",
    "POSITIVE",
    "PREFERRING",
    "Combined",
    "Combiner",
    "Nested",
    "PullPush",
    "Scaled",
    "Setup",
    "build_combiner",
    "epo_weights",
    "pcgrad_weights",
]
