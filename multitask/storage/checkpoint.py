"""The training state of a run: its progress, and the checkpoints from which it resumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import torch
from torch import Tensor, nn

from common.atomic_files import kind_of, paths_in, recover, remove
from common.json_files import integrity_error, read_json, write_json
from common.run_files import CHECKPOINT_PARTS
from minbert.weights import read_tensors, save_tensors
from multitask.settings.config import RunConfig
from multitask.storage.checkpoint_folders import (
    BEST,
    CheckpointError,
    newest_first,
    publish,
    published,
    step_of,
)
from multitask.storage.optimizer_state import numbers_of, with_numbers
from multitask.storage.stored_config import check_of_run

NUMBERS = "optimizer"  # key of the numbers of an optimiser


class Scored(TypedDict):
    """Dev metrics after an epoch."""

    epoch: int
    step: int
    selection_score: float
    dev: dict[str, Any]


@dataclass
class Progress:
    """Counts and scores of a run, part of the trainer's `state_dict`."""

    epoch: int = 0  # finished epochs
    taken: int = 0  # steps of the next epoch
    step: int = 0
    seconds: float = 0.0  # of training, without evaluation
    examples: int = 0
    skipped: int = 0  # steps skipped in a row: loss or gradient not finite
    best_score: float = float("-inf")
    best_epoch: int = 0
    statuses: dict[str, int] = field(default_factory=dict)  # status of the combiner -> steps
    conflicts: dict[str, list[float]] = field(default_factory=dict)  # see telemetry
    history: list[Scored] = field(default_factory=list)
    stopped: bool = False  # by a callback
    # Pre-training: dev metrics before the first step.
    before: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Progress:
        """Return the progress stored as JSON; raise ValueError for other content."""
        return msgspec.convert(content, cls)

    @property
    def scored(self) -> bool:
        """Whether the last finished epoch has its dev score."""
        return bool(self.history) and self.history[-1]["epoch"] == self.epoch

    def count(self, status: str, examples: int) -> None:
        """Add a step with the combiner's `status`."""
        self.examples += examples
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def add_score(self, score: float, dev: Mapping[str, Any], keep_last: bool) -> bool:
        """Add the dev score of the epoch; return whether to keep its weights."""
        self.history.append(
            {"epoch": self.epoch, "step": self.step, "selection_score": score, "dev": dict(dev)}
        )
        better = score > self.best_score or keep_last
        if better:
            self.best_score, self.best_epoch = score, self.epoch
        return better

    def due(self, config: RunConfig) -> bool:
        """Return whether an evaluation is due before the next epoch."""
        last = self.epoch >= config.epochs
        at_this_one = self.epoch > 0 and (self.epoch % config.evaluate_every == 0 or last)
        return at_this_one and not self.scored

    def finished(self, config: RunConfig) -> bool:
        """Return whether training ended: by a callback, the last epoch or the patience."""
        patience = config.patience or config.epochs
        since = self.epoch - max(self.best_epoch, config.probe_epochs)
        ended = self.stopped or self.epoch >= config.epochs or since >= patience
        return ended and self.scored

    def summary(self, epochs: int) -> str:
        """Return the progress as text."""
        return f"step {self.step:,}, epoch {self.epoch} of {epochs}"


def check_same_start(state: Mapping[str, Any], processes: int, data: str) -> None:
    """Raise CheckpointError for another number of processes or data than at the first start."""
    if state["processes"] != processes:
        raise CheckpointError(
            f"--resume: expected {state['processes']} processes, as at the start of the run, "
            f"found {processes}"
        )
    if state["data"] != data:
        raise CheckpointError(
            "--resume: expected the examples of the run's first start, found others; "
            "--overwrite starts again"
        )


KEPT = 2  # checkpoints, so that one remains if the newest is damaged
State = tuple[dict[str, Any], dict[str, dict[str, Tensor]]]  # JSON; tensors by owner and name


@dataclass(frozen=True)
class Checkpoints:
    """The last two checkpoints of a run's training, `step-N` in one folder.

    `config` is that of the run, as JSON. It is stored in each checkpoint, and a checkpoint of
    another run is not loaded.
    """

    folder: Path
    config: Mapping[str, object] = field(default_factory=dict)

    def save(
        self,
        step: int,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        state: Mapping[str, Any],
        others: Mapping[str, Mapping[str, Tensor]] | None = None,
    ) -> None:
        """Write the state after `step`, and keep only the newest checkpoint before it.

        Checkpoints of later steps, which are damaged, are removed first.
        """
        folder = self.folder / f"step-{step:08}"
        for old in newest_first(self.folder):
            if step_of(old) > step or not old.is_dir():
                remove(old, ignore_errors=True)
        publish(
            folder,
            lambda target: save_training(target, model, optimizer, state, others),
            self.config,
        )
        for old in newest_first(self.folder)[KEPT:]:
            remove(old, ignore_errors=True)

    def save_best(self, write: Callable[[Path], None]) -> None:
        """Let `write` fill the folder of the best epoch's weights, the result of the run."""
        publish(self.folder / BEST, write, self.config)

    def load(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> State | None:
        """Load the newest intact checkpoint into model and optimiser; return None without any.

        A damaged checkpoint is reported, and the previous one is used. Raise CheckpointError if all
        are damaged, or for a checkpoint of another run.
        """
        every = newest_first(self.folder)
        for folder in every:
            if found := integrity_error(folder):
                print(f"{found}; trying the previous checkpoint", flush=True)
            else:
                self.check(folder)
                return load_training(folder, model, optimizer)
        if every:
            raise CheckpointError(
                f"{self.folder}: expected an intact checkpoint, found {len(every)} damaged; "
                "--overwrite starts again"
            )
        return None

    def check(self, folder: Path) -> None:
        """Raise CheckpointError unless the checkpoint is of this run."""
        try:
            check_of_run(folder, self.config)
        except CheckpointError as error:
            raise CheckpointError(f"{error}; --overwrite starts again") from error

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Turn errors from a state of another form into a CheckpointError."""
        try:
            yield
        except CheckpointError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise CheckpointError(
                f"{self.folder}: expected the state of this run, "
                f"found {type(error).__name__}: {error}; --overwrite starts again"
            ) from error

    def check_best(self, epoch: int) -> None:
        """Raise CheckpointError if the best epoch's weights are missing or of another run."""
        if not epoch:
            return
        recover(self.folder / BEST)
        try:
            best = published(self.folder / BEST)
        except CheckpointError as error:
            raise CheckpointError(f"{error}; --overwrite starts again") from error
        if best is None:
            raise CheckpointError(
                f"{self.folder / BEST}: expected the weights of epoch {epoch}, found none; "
                "--overwrite starts again"
            )
        self.check(best)

    def forget(self) -> None:
        """Delete all but the best weights; the optimiser's state is twice their size."""
        recover(self.folder / BEST)
        half = (path for path in paths_in(self.folder) if kind_of(path) is not None)
        for path in (*newest_first(self.folder), *half):
            remove(path, ignore_errors=True)


def save_training(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Mapping[str, Any],
    others: Mapping[str, Mapping[str, Tensor]] | None = None,
) -> None:
    """Write weights, optimiser moments, `state` (JSON) and the tensors of `others`."""
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    tensors |= {
        f"optimizer/{index}/{name}": value
        for index, moments in optimizer.state_dict()["state"].items()
        for name, value in moments.items()
        if isinstance(value, Tensor)
    }
    tensors |= {
        f"{name}/{key}": value
        for name, several in (others or {}).items()
        for key, value in several.items()
    }
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    save_tensors(tensors, folder / "state.safetensors")
    write_json(folder / "state.json", {**state, NUMBERS: numbers_of(optimizer)})


def load_training(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """Load what `save_training` wrote into model and optimiser; return its `state` and `others`.

    Raise CheckpointError if it is the state of another model.
    """
    tensors = read_tensors(folder / "state.safetensors", CheckpointError)
    state = read_json(folder / "state.json", CheckpointError)
    parts: dict[str, dict[str, Tensor]] = {part: {} for part in CHECKPOINT_PARTS}
    try:
        for name, value in tensors.items():
            part, rest = name.split("/", 1)
            parts.setdefault(part, {})[rest] = value
        model.load_state_dict(parts.pop("model"))
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in parts.pop("optimizer").items():
            index, kind = name.split("/", 1)
            moments.setdefault(int(index), {})[kind] = value
        groups = optimizer.state_dict()["param_groups"]
        stored = {"state": moments, "param_groups": groups}
        optimizer.load_state_dict(with_numbers(stored, state.pop(NUMBERS)))
    except (RuntimeError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"{folder}: expected the weights of this run; --overwrite starts again; found others: "
            f"{error}"
        ) from error
    return state, parts
