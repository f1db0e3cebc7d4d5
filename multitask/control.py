"""How a run is executed, which does not change its results: options, and callbacks.

A callback is an object with one or both of these methods, or a function, which is an
`on_epoch_end`:

    on_scalars(values: dict[str, float], step)   every ten steps, and after each evaluation
    on_epoch_end(end: EpochEnd)                  after each evaluation on dev; STOP ends training

Only the first of several processes calls them. TensorBoard is one that stores its curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import SettingsError
from common.settings import short


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
    callbacks: tuple[Any, ...] = ()  # see multitask/control.py
    tensorboard: bool = True  # store curves

    def __post_init__(self) -> None:
        if self.resume and self.overwrite:
            raise SettingsError("resume and overwrite: expected at most one of them")


STOP = "stop"  # what on_epoch_end returns to end training; the best epoch so far is kept


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


class Callbacks:
    """All callbacks of a run, called in order."""

    def __init__(self, callbacks: Sequence[Any]) -> None:
        self.on_scalars = [one.on_scalars for one in callbacks if hasattr(one, "on_scalars")]
        self.on_epoch_end = [
            getattr(one, "on_epoch_end", one)
            for one in callbacks
            if hasattr(one, "on_epoch_end") or not hasattr(one, "on_scalars")
        ]
        for one in self.on_epoch_end:
            if not callable(one):
                expected = "expected functions, or objects with on_scalars or on_epoch_end"
                raise SettingsError(f"callbacks: {expected}, found {short(one)}")

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Pass points of curves to the callbacks."""
        for call in self.on_scalars:
            call(dict(values), step)

    def stops(self, end: EpochEnd) -> bool:
        """Call `on_epoch_end`; return whether a callback stops the training."""
        stops = STOP in [call(end) for call in self.on_epoch_end]
        if stops:
            print(f"stopped by a callback after epoch {end.epoch}", flush=True)
        return stops


class TensorBoard:
    """Curves in `tensorboard/` of the run's folder. The slow import waits for the first point."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tensorboard"
        self.writer: Any = None
        self.first_step = 1  # of this start; later points of an earlier one are computed again

    def on_scalars(self, values: Mapping[str, float], step: int) -> None:
        if self.writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(self.folder), purge_step=self.first_step)
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.writer = None
