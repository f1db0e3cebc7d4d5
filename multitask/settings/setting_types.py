"""Types of single settings of a run, and the modes that have them."""

from __future__ import annotations

from dataclasses import Field
from typing import Annotated, Any, Literal

from msgspec import Meta

Mode = Literal["", "single", "multitask", "pretrain", "probe", "ensemble"]
TRAINING_MODES: tuple[Mode, ...] = ("single", "multitask", "pretrain")
# The property `modes` of a setting: the modes of the command line that have it. A setting without
# this property is of TRAINING_MODES.
SUPERVISED = ("single", "multitask")
BY_HAND = "by hand"  # the property `flag` of a setting whose flag the modes add themselves

LIMIT = "a whole number from 1 to 1000000, or a share above 0 and below 1"
Limit = (
    Annotated[int, Meta(ge=1, le=1_000_000, description=LIMIT)]
    | Annotated[float, Meta(gt=0, lt=1, description=LIMIT)]
)

Balanced = Literal["balanced"]
Branch = Annotated[str, Meta(pattern=r"^top-[1-9][0-9]{0,2}$", description="top-K such as top-2")]
Smoothing = Annotated[float, Meta(ge=0, lt=1, description="a number from 0 and below 1")]


def has_mode(one: Field[Any], mode: str) -> bool:
    """Return whether a training mode of the command line has a setting."""
    return mode in one.metadata.get("modes", (mode,))
