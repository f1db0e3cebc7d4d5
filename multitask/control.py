"""How a run is executed, which does not change its results: options, and callbacks.

A callback is an object with one or both of these methods, or a function, which is an
`on_epoch_end`:

    on_scalars(values: dict[str, float], step)   every ten steps, and after each evaluation
    on_epoch_end(end: EpochEnd)                  after each evaluation on dev

Only the first of several processes calls them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import SettingsError


@dataclass(frozen=True)
class RunControl:
    """How a run is executed, which does not change its results.

    `checkpoint_every` is a number of steps; other checkpoints are written every ten minutes
    and after each evaluation.
    """

    resume: bool = False
    overwrite: bool = False
    checkpoint_every: int | None = None
    command: str | None = None  # command line, stored with the metrics
    callbacks: tuple[Any, ...] = ()
    tensorboard: bool = True  # store curves

    def __post_init__(self) -> None:
        if self.resume and self.overwrite:
            raise SettingsError("resume and overwrite: expected at most one of them")


@dataclass(frozen=True)
class EpochEnd:
    """An evaluated epoch; `epoch` counts from 1, `seconds` are those of training so far.

    `metrics` has the dev metrics of each task, as in `metrics.json`. `score`, from 0 to 1, selects
    the best epoch; `better` says that this epoch's weights are kept. `model` is the one in
    training.
    """

    epoch: int
    epochs: int
    step: int
    seconds: float
    metrics: Mapping[str, Mapping[str, float]]
    score: float
    better: bool
    folder: Path
    model: Any
