"""Methods that combine the gradients of several objectives, a file for each group.

>>> from multitask.combiners import PCGrad
>>> RunConfig(tasks=("sst", "sts"), combiner=PCGrad())
"""

from __future__ import annotations

from dataclasses import replace

from common.errors import RunError
from multitask.combiners.base import Combined, Combiner, CombinerState, Setup
from multitask.combiners.epo import EPO, epo_weights
from multitask.combiners.famo import FAMO
from multitask.combiners.gramian import (
    IMTLG,
    AlignedMTL,
    CAGrad,
    DualProj,
    FairGrad,
    NashMTL,
    UPGrad,
)
from multitask.combiners.mgda import MGDA
from multitask.combiners.nested import Nested, pull_push_weights
from multitask.combiners.pcgrad import PCGrad, pcgrad_weights
from multitask.combiners.sum import LinearScalarization, Sum
from multitask.combiners.uncertainty import Uncertainty
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


__all__ = [
    "EPO",
    "FAMO",
    "IMTLG",
    "MGDA",
    "AlignedMTL",
    "CAGrad",
    "Combined",
    "Combiner",
    "CombinerState",
    "DualProj",
    "FairGrad",
    "LinearScalarization",
    "NashMTL",
    "Nested",
    "PCGrad",
    "Setup",
    "Sum",
    "UPGrad",
    "Uncertainty",
    "build_combiner",
    "epo_weights",
    "pcgrad_weights",
    "pull_push_weights",
]
