"""How several objectives' gradients become one step; one file a method."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from multitask.combiners.base import ALONE, Combined, Combiner, Running, Scaled, Setup
from multitask.combiners.epo import epo_weights
from multitask.combiners.nested import Nested, PullPush
from multitask.combiners.pcgrad import pcgrad_weights
from tasks import task_and_term

if TYPE_CHECKING:
    from multitask.config import RunConfig


def build_combiner(config: RunConfig, objectives: tuple[str, ...]) -> Running:
    """The combiner of a configuration, for a run's objectives in their order."""
    setup = Setup(objectives, config.seed)
    balance = getattr(config.objective, "balance", None)
    if balance is not None:
        tasks = tuple(dict.fromkeys(task_and_term(name)[0] for name in objectives))
        outer = config.combiner.build(replace(setup, objectives=tasks))
        return Nested(setup, outer, PullPush(*balance))
    combiner = config.combiner.build(setup)
    return Scaled(combiner, config.loss_sizes) if config.loss_sizes else combiner


__all__ = [
    "ALONE",
    "Combined",
    "Combiner",
    "Nested",
    "PullPush",
    "Running",
    "Scaled",
    "Setup",
    "build_combiner",
    "epo_weights",
    "pcgrad_weights",
]
