"""Types of single settings of a run."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

Mode = Literal[
    "", "single", "multitask", "pretrain", "probe", "bilstm", "pareto", "ensemble", "soup"
]
LIMIT = "a whole number from 1 to 1000000, or a share above 0 and below 1"
Limit = (
    Annotated[int, Meta(ge=1, le=1_000_000, description=LIMIT)]
    | Annotated[float, Meta(gt=0, lt=1, description=LIMIT)]
)

Smoothing = Annotated[float, Meta(ge=0, lt=1, description="a number from 0 and below 1")]
