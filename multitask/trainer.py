"""The one training loop, for 1..n tasks: plan -> batches -> gradient -> optimiser."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from minbert.linear_choice import choose_linear
from minbert.progress import bar
from multitask.checkpoint import (
    CheckpointError,
    load_training,
    publish,
    published,
    save_training,
)
from multitask.combiners import build_combiner
from multitask.config import RunConfig
from multitask.distributed import Processes
from multitask.evaluation import Metrics, evaluate, selection_score
from multitask.model import MultiTaskModel
from multitask.optimizer import build_optimizer, learning_rate_factor, set_learning_rate
from multitask.probing import probing, stage
from multitask.regularizers import build_regularizers
from multitask.schedule import build_plan
from multitask.step import StepGradient, StepResult
from multitask.streams import BatchStream, make_pass
from multitask.telemetry import LOG_EVERY, MEASURE_EVERY, Telemetry, count_conflicts
from tasks.base import Task
from tasks.data import Split
from tasks.metrics import overall


@dataclass
class Progress:
    """How far a run is: what a resumed run needs beside weights and optimiser."""

    epoch: int = 0  # epochs finished
    step: int = 0
    seconds: float = 0.0  # of training, without evaluation
    examples: int = 0
    best_score: float = float("-inf")
    best_epoch: int = 0
    statuses: dict[str, int] = field(default_factory=dict)  # of the combiner -> steps
    conflicts: dict[str, list[float]] = field(default_factory=dict)  # see telemetry
    history: list[dict[str, Any]] = field(default_factory=list)
    before: Metrics = field(default_factory=dict)  # pre-training: dev metrics of its start


class Trainer:
    """Trains one model on the `train` splits and keeps the best epoch by the `dev` splits."""

    def __init__(
        self,
        model: MultiTaskModel,
        tasks: Mapping[str, Task],
        splits: Mapping[str, Mapping[str, Split]],
        config: RunConfig,
        folder: Path,
        processes: Processes | None = None,
    ) -> None:
        self.model, self.tasks, self.splits = model, tasks, splits
        self.config, self.folder = config, folder
        self.processes = processes or Processes()
        self.names = list(tasks)
        train = [splits[name]["train"] for name in self.names]
        self.plan = build_plan(config, [len(split.examples) for split in train])
        self.streams = [
            BatchStream(make_pass(config, tasks[name], split), config.seed, name)
            for name, split in zip(self.names, train, strict=True)
        ]
        objectives = tuple(name for task in tasks.values() for name in task.objectives)
        self.combiner = build_combiner(config, objectives)
        self.regularizers = build_regularizers(config, model, tasks)
        self.gradient = StepGradient(
            model, tasks, splits, self.combiner, config, self.processes, self.regularizers
        )
        self.optimizer = build_optimizer(model, config)
        steps = [len(self.plan.steps(epoch + 1)) for epoch in range(config.epochs)]
        self.total_steps, self.probe_steps = sum(steps), sum(steps[: config.probe_epochs])
        self.progress = Progress()
        self.best_dev: tuple[Metrics, Mapping[str, np.ndarray]] | None = None
        self.telemetry = Telemetry(folder if self.processes.first else None)
        model.dropout_stream.reset(config.seed)
        model.dropout_stream.rank = self.processes.rank

    @property
    def best_folder(self) -> Path:
        return self.folder / "checkpoint" / "best"

    @property
    def last_folder(self) -> Path:
        return self.folder / "checkpoint" / "last"

    def fit(self) -> None:
        """Train to the last epoch, or until `patience` epochs brought nothing better."""
        patience = self.config.patience or self.config.epochs
        dev = {name: self.splits[name]["dev"] for name in self.names}
        try:
            if self.config.mode == "pretrain" and not self.progress.before:
                self.progress.before = self.evaluate(dev)[0]
            while self.progress.epoch < self.config.epochs:
                last = max(self.progress.best_epoch, self.config.probe_epochs)
                if self.scored and self.progress.epoch - last >= patience:
                    break
                epoch = self.progress.epoch + 1
                self.train_epoch(epoch)
                if epoch % self.config.evaluate_every and epoch < self.config.epochs:
                    continue
                found = self.evaluate(dev)
                if self.finish_epoch(found[0]):
                    self.best_dev = found
        finally:
            self.telemetry.close()

    @property
    def scored(self) -> bool:
        """Whether the last epoch was evaluated and has its checkpoint."""
        history = self.progress.history
        return bool(history) and history[-1]["epoch"] == self.progress.epoch

    def evaluate(self, dev: Mapping[str, Split]) -> tuple[Metrics, dict[str, np.ndarray]]:
        return evaluate(self.model, self.tasks, dev, self.config.precision, self.processes)

    def train_epoch(self, epoch: int) -> None:
        """Every step of one epoch, with a progress bar that counts examples."""
        if self.config.probe_epochs:
            self.model.freeze_encoder(probing(epoch, self.config.probe_epochs))
        self.model.train()
        self.gradient.begin_epoch(epoch)
        steps = self.plan.steps(epoch)
        begin = time.perf_counter()
        expected = sum(len(step) for step in steps) * self.config.batch_size
        latest: dict[str, str] = {}  # the last loss of each objective, for the bar
        with bar(f"epoch {epoch}/{self.config.epochs}", "ex", expected) as progress:
            for step in steps:
                result = self.train_step(step)
                for name, loss in zip(result.objectives, result.losses, strict=True):
                    latest[name] = f"{loss:.3f}"
                progress.update(result.examples)
                if self.progress.step % LOG_EVERY == 0:
                    progress.set_postfix(latest, refresh=False)
            progress.total = progress.n  # short last batches: the bar ends full
            progress.refresh()
        self.progress.seconds += time.perf_counter() - begin
        self.progress.epoch = epoch

    def train_step(self, drawn: np.ndarray) -> StepResult:
        """One optimiser step on the next batches of the tasks `drawn`."""
        progress = self.progress
        measure = progress.step % MEASURE_EVERY == 0
        result = self.gradient(self.draw(drawn), measure, progress.step)
        position = stage(progress.step, self.probe_steps, self.total_steps)
        factor = learning_rate_factor(*position, self.config.warmup)
        set_learning_rate(self.optimizer, factor)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for regularizer in self.regularizers.values():
            regularizer.after_step(self.model)
        progress.step += 1
        progress.examples += result.examples
        status = result.combined.status
        progress.statuses[status] = progress.statuses.get(status, 0) + 1
        count_conflicts(progress.conflicts, result)
        figures = {"gradient_norm": float(norm), "learning_rate_factor": factor}
        self.telemetry.step(progress.step, result, figures)
        return result

    def draw(self, drawn: np.ndarray) -> dict[str, list[np.ndarray]]:
        """Rows of the next batches of each task, the tasks in the run's order."""
        return {
            self.names[task]: [self.streams[task].next() for _ in range(int((drawn == task).sum()))]
            for task in np.unique(drawn)
        }

    def finish_epoch(self, metrics: Metrics) -> bool:
        """Log the dev metrics, keep the weights if they are the best, write the checkpoint.

        Says whether they are the best.
        """
        progress = self.progress
        score = selection_score(metrics, self.tasks)
        progress.history.append(
            {"epoch": progress.epoch, "step": progress.step, "selection_score": score}
            | {"dev": metrics | overall(metrics)}
        )
        self.telemetry.scalars(
            {f"dev/{task}/{k}": v for task, found in metrics.items() for k, v in found.items()}
            | {"dev/selection_score": score},
            progress.step,
        )
        better = score > progress.best_score or self.config.keep == "last"
        if better:
            progress.best_score, progress.best_epoch = score, progress.epoch
        if self.processes.first:
            self.telemetry.flush()
            if better:
                publish(self.best_folder, self.model.save)
            kept = {n: r.state_dict() for n, r in self.regularizers.items()}
            save_training(self.last_folder, self.model, self.optimizer, self.state(), kept)
        self.processes.gather(None)  # nobody goes on before the checkpoint stands
        return better

    def state(self) -> dict[str, Any]:
        """What a resumed run needs beside weights and optimiser, as JSON."""
        return {
            "progress": asdict(self.progress),
            "streams": {stream.task: stream.position for stream in self.streams},
            "combiner": self.combiner.state_dict(),
            "dropout": self.model.dropout_stream.state_dict(),
            "linear": self.config.linear,
            "processes": self.processes.count,
        }

    def resume(self) -> bool:
        """Go back to the last finished epoch; False where there is no checkpoint."""
        folder = published(self.last_folder)
        if folder is None:
            return False
        state, kept = load_training(folder, self.model, self.optimizer)
        try:
            self.restore(state)
            for name, regularizer in self.regularizers.items():
                regularizer.load_state_dict(kept.get(name, {}))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{folder / 'state.json'}: expected the state of this run, "
                f"found {type(error).__name__}: {error}; --overwrite starts again"
            ) from error
        if self.processes.first:
            self.telemetry.forget_after(self.progress.step)
        return True

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to what `state` told."""
        if state["processes"] != self.processes.count:
            raise CheckpointError(
                f"--resume: expected {state['processes']} processes, as the run began with, "
                f"found {self.processes.count}"
            )
        self.progress = Progress(**state["progress"])
        for stream in self.streams:
            number, taken = state["streams"][stream.task]
            stream.position = (number, taken)
        self.combiner.load_state_dict(state["combiner"])
        self.model.dropout_stream.load_state_dict(state["dropout"])
        self.model.bi_encoder.encoder.use_linear(choose_linear(state["linear"]).kernel)

    def forget(self) -> None:
        """Delete what only an unfinished run needs: the optimiser's state is twice the weights."""
        shutil.rmtree(self.last_folder, ignore_errors=True)

    def load_best(self) -> None:
        """Put the best epoch's weights into the model."""
        folder = published(self.best_folder)
        assert folder is not None, "no epoch was finished"
        self.model.load(folder)
