"""Callbacks of a training run, and trackers, which are callbacks that store its curves.

A callback is an object with some of these methods, or a function, which is an `on_epoch_end`:

    on_train_begin(start: TrainStart)            before the first step, also of a resumed run
    on_scalars(values: dict[str, float], step)   every ten steps, and after each evaluation
    on_epoch_end(end: EpochEnd)                  after each evaluation on dev; STOP ends training
    on_train_end()                               after the last step, also after an error

Only the first of several processes calls them. This module does not import torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from common.errors import RunError, SettingsError
from common.settings import convert
from multitask.settings.config import RunConfig

STOP = "stop"  # what on_epoch_end returns to end training; the best epoch so far is kept


@dataclass(frozen=True)
class TrainStart:
    """What is known before the first step; `step` is above 0 in a resumed run.

    `epochs` are those that were evaluated, each with its weights in a checkpoint.
    """

    folder: Path
    config: RunConfig
    step: int
    steps: int  # of the whole run
    epochs: int = 0


@dataclass(frozen=True)
class EpochEnd:
    """An evaluated epoch; `epoch` counts from 1, `seconds` are those of training so far.

    `metrics` has the dev metrics of each task, as in `metrics.json`. `score`, from 0 to 1, selects
    the best epoch; `better` says that this epoch's weights are kept. `model` is the one that was
    scored: the one in training, or with `average_weights` the average of its weights.
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
        for one in callbacks:
            if not callable(one) and not any(hasattr(one, hook) for hook in HOOKS):
                raise SettingsError(
                    f"callbacks: expected functions, or objects with {', '.join(HOOKS)}, found "
                    f"{type(one).__name__}"
                )
        self.callbacks = tuple(
            one if any(hasattr(one, hook) for hook in HOOKS) else SimpleNamespace(on_epoch_end=one)
            for one in callbacks
        )

    def call(self, hook: str, *values: Any) -> list[Any]:
        """Call a hook of all callbacks that have it; return what they return."""
        methods = [getattr(one, hook, None) for one in self.callbacks]
        return [method(*values) for method in methods if method is not None]

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Pass points of curves to the callbacks."""
        self.call("on_scalars", dict(values), step)

    def stops(self, end: EpochEnd) -> bool:
        """Call `on_epoch_end`; return whether a callback stops the training."""
        answers = self.call("on_epoch_end", end)
        if wrong := [one for one in answers if one not in (None, STOP)]:
            raise RunError(f"on_epoch_end: expected None or multitask.STOP, found {wrong[0]!r:.60}")
        if STOP in answers:
            print(f"stopped by a callback after epoch {end.epoch}", flush=True)
        return STOP in answers


HOOKS = ("on_train_begin", "on_scalars", "on_epoch_end", "on_train_end")


class TensorBoard:
    """Curves in `tensorboard/` of the run's folder. The slow import waits for the first point."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tensorboard"
        self.writer: Any = None
        self.purge: int | None = None

    def on_train_begin(self, start: TrainStart) -> None:
        # Points after the checkpoint of a resumed run are computed again.
        self.purge = start.step + 1

    def on_scalars(self, values: Mapping[str, float], step: int) -> None:
        if self.writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(self.folder), purge_step=self.purge)
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def on_train_end(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.writer = None


class MLflow:
    """Settings and curves in MLflow, at the place that MLFLOW_TRACKING_URI names."""

    def __init__(self, folder: Path) -> None:
        self.mlflow = import_module("mlflow")

    def on_train_begin(self, start: TrainStart) -> None:
        with start_reported("mlflow"):
            self.mlflow.start_run(run_name=start.folder.name)
            self.mlflow.log_params(plain_settings(start.config))

    def on_scalars(self, values: Mapping[str, float], step: int) -> None:
        self.mlflow.log_metrics(dict(values), step=step)

    def on_train_end(self) -> None:
        self.mlflow.end_run()


class WeightsAndBiases:
    """Settings and curves in Weights & Biases, in the project that WANDB_PROJECT names."""

    def __init__(self, folder: Path) -> None:
        self.wandb = import_module("wandb")
        self.run: Any = None

    def on_train_begin(self, start: TrainStart) -> None:
        settings = plain_settings(start.config)
        with start_reported("wandb"):
            self.run = self.wandb.init(name=start.folder.name, config=settings)

    def on_scalars(self, values: Mapping[str, float], step: int) -> None:
        self.run.log(dict(values), step=step)

    def on_train_end(self) -> None:
        if self.run is not None:
            self.run.finish()


@contextmanager
def start_reported(name: str) -> Iterator[None]:
    """Turn an error at the start of a tracker, such as a missing login, into a RunError."""
    try:
        yield
    except Exception as error:  # each library has its own classes
        raise RunError(f"--tracker {name}: cannot be started: {error}") from error


def plain_settings(config: RunConfig) -> dict[str, str]:
    """Return the settings other than None by name, as texts."""
    found = config.to_json().items()
    return {
        name: one if isinstance(one, str) else json.dumps(one)
        for name, one in found
        if one is not None
    }


TrackerName = Literal["tensorboard", "mlflow", "wandb", "none"]
TRACKERS: dict[str, Callable[[Path], Any]] = {  # by the name of the package
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WeightsAndBiases,
}


def trackers(name: str, folder: Path) -> list[Any]:
    """Return the tracker of this name; raise SettingsError if its package is not installed."""
    convert("tracker", TrackerName, name)
    if name == "none":
        return []
    if find_spec(name) is None:
        line = f"tracker: expected the package {name}, found none: pip install {name}"
        raise SettingsError(line)
    return [TRACKERS[name](folder)]
