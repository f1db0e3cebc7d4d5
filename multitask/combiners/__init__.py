"""Methods that combine the gradients of several objectives, a file for each group.

>>> from multitask.combiners import PCGrad
>>> RunConfig(tasks=("sst", "sts"), combiner=PCGrad())
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from common.errors import RunError
from multitask.combiners.base import Combined, Combiner, CombinerState, Setup
from multitask.combiners.epo import epo_weights
from multitask.combiners.nested import Nested, pull_push_weights
from multitask.combiners.pcgrad import pcgrad_weights
from tasks import task_and_term
from tasks.objectives import Balance


def build_combiner(combiner: Combiner, setup: Setup, balance: Balance | None) -> CombinerState:
    """Return the combiner of a run, or a nested one if tasks balance their own objectives."""
    if balance is None:
        return built(combiner, setup)
    tasks = tuple(dict.fromkeys(task_and_term(name)[0] for name in setup.objectives))
    return Nested(setup, built(combiner, replace(setup, objectives=tasks)), balance)


def built(combiner: Combiner, setup: Setup) -> CombinerState:
    """Return a combiner of one run; raise RunError if `build` returns something else."""
    found = combiner.build(setup)
    for part in ("combine", "needs_rows", "state_dict", "load_state_dict"):
        if not hasattr(found, part):
            expected = f"expected build to return a CombinerState, with {part}"
            raise RunError(f"combiner {combiner.name}: {expected}, found {type(found).__name__}")
    return found


def __getattr__(name: str) -> Any:
    """Return the class of a built-in combiner, from the table of methods."""
    if not name.startswith("_"):
        # This imports the files of the package.
        table = import_module("multitask.settings.methods")
        for method in table.built_in("combiner").values():
            if method.__name__ == name:
                return method
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Combined",
    "Combiner",
    "CombinerState",
    "Nested",
    "Setup",
    "build_combiner",
    "epo_weights",
    "pcgrad_weights",
    "pull_push_weights",
]
