"""Types of single settings of a run."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

Mode = Literal[
    "", "single", "multitask", "pretrain", "probe", "bilstm", "pareto", "ensemble", "soup"
]
TRAINED: tuple[Mode, ...] = ("single", "multitask", "pretrain", "pareto")
# Modes of the command line that have a setting; one without `modes` is of all modes that train.
OF_RUNS = ("single", "multitask")
OF_TASKS = (*OF_RUNS, "affinity", "pareto")  # those that train heads
OF_MIXING = ("multitask", "pareto")
BY_HAND = "by hand"  # a flag that modes add themselves

LIMIT = "a whole number from 1 to 1000000, or a share above 0 and below 1"
Limit = (
    Annotated[int, Meta(ge=1, le=1_000_000, description=LIMIT)]
    | Annotated[float, Meta(gt=0, lt=1, description=LIMIT)]
)

Smoothing = Annotated[float, Meta(ge=0, lt=1, description="a number from 0 and below 1")]
