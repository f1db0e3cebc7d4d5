"""The one training loop, for 1..n tasks: plan -> batches -> gradient -> optimiser."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from common.progress import bar
from multitask.atomic_dirs import publish
from multitask.checkpoint import Checkpoints
from multitask.combiners import build_combiner
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.distributed import Processes
from multitask.environment import now
from multitask.errors import RunError
from multitask.evaluation import Metrics, evaluate, selection_score
from multitask.interrupts import Interrupts
from multitask.model import EncoderWithHeads
from multitask.probing import probing
from multitask.progress import Progress
from multitask.regularizers.base import build_regularizers
from multitask.resuming import fingerprint, state_of
from multitask.schedule import build_plan
from multitask.step import StepGradient
from multitask.step_result import StepResult
from multitask.stepping import OptimizerStep, finite
from multitask.stored import best_folder, best_weights
from multitask.streams import BatchStream, make_pass
from multitask.telemetry import LOG_EVERY, Telemetry
from tasks.base import Task
from tasks.data import Split
from tasks.metrics import overall


class Trainer:
    """Trains one model on the `train` splits and keeps the best epoch by the `dev` splits."""

    def __init__(
        self,
        model: EncoderWithHeads,
        tasks: Mapping[str, Task],
        splits: Mapping[str, Mapping[str, Split]],
        config: RunConfig,
        folder: Path,
        processes: Processes = Processes(),
        control: RunControl = RunControl(),
    ) -> None:
        self.model, self.tasks, self.splits = model, tasks, splits
        self.config, self.folder = config, folder
        self.processes, self.control = processes, control
        self.names = list(tasks)
        train = [splits[name]["train"] for name in self.names]
        self.plan = build_plan(
            config,
            [len(split.examples) for split in train],
            [split.examples.available for split in train],
        )
        self.streams = [
            BatchStream(make_pass(config, tasks[name], split), config.seed, name)
            for name, split in zip(self.names, train, strict=True)
        ]
        objectives = tuple(name for task in tasks.values() for name in task.objectives)
        self.combiner = build_combiner(config, objectives)
        self.regularizers = build_regularizers(config, model, tasks)
        self.gradient = StepGradient(
            model, tasks, splits, self.combiner, self.regularizers, config, processes
        )
        self.optimizer = config.optimizer.build(model)
        self.progress = Progress()
        self.best_dev: tuple[Metrics, Mapping[str, np.ndarray]] | None = None
        self.telemetry = Telemetry(folder if self.processes.first else None)
        steps = [len(self.plan.steps(epoch + 1)) for epoch in range(config.epochs)]
        self.total_steps = sum(steps)
        self.optimizer_step = OptimizerStep(
            self.gradient,
            self.optimizer,
            self.streams,
            self.regularizers,
            config,
            (sum(steps[: config.probe_epochs]), self.total_steps),
            self.telemetry,
        )
        self.data = fingerprint(splits)
        self.interrupts = Interrupts(self.processes.count)
        self.checkpoints = Checkpoints(folder / "checkpoint", config.to_json())
        self.kept = self.moment  # of the newest checkpoint
        self.kept_at = time.monotonic()
        self.began = now()  # of a resumed run when it began first
        model.dropout_stream.reset(config.seed)
        model.dropout_stream.rank = self.processes.rank

    @property
    def best_folder(self) -> Path:
        return best_folder(self.folder)

    def fit(self) -> None:
        """Train to the last epoch, or until `patience` epochs brought nothing better.

        StudyRequest to stop (SIGINT, SIGTERM), it ends its step, writes a checkpoint and raises
        KeyboardInterrupt.
        """
        # Of several processes none may leave by itself, or the others fail at what they exchange.
        several = self.processes.count > 1
        try:
            with self.interrupts.held() if several else nullcontext():
                self.train_and_score()
        except KeyboardInterrupt:
            self.interrupts.first = self.interrupts.first or time.monotonic()
            self.save()
            raise
        finally:
            self.telemetry.close()

    def train_and_score(self) -> None:
        dev = {name: self.splits[name]["dev"] for name in self.names}
        if self.config.mode == "pretrain" and not self.progress.before:
            self.progress.before = self.evaluate(dev)[0]
        while not self.progress.finished(self.config):
            if self.progress.due(self.config):
                found = self.evaluate(dev)
                if self.finish_epoch(found[0]):
                    self.best_dev = found
            else:
                self.train_epoch(self.progress.epoch + 1)
            self.stop_if_asked()

    def evaluate(self, dev: Mapping[str, Split]) -> tuple[Metrics, dict[str, np.ndarray]]:
        return evaluate(self.model, self.tasks, dev, self.processes)

    def train_epoch(self, epoch: int) -> None:
        """The steps of an epoch that are left, with a progress bar that counts examples."""
        if self.config.probe_epochs:
            self.model.freeze_encoder(probing(epoch, self.config.probe_epochs))
        self.model.train()
        self.gradient.begin_epoch(epoch)
        every = self.plan.steps(epoch)
        steps = every[self.progress.taken :]
        expected = sum(len(step) for step in steps) * self.config.batch_size
        latest: dict[str, str] = {}  # the last loss of each objective, for the bar
        with bar(f"epoch {epoch}/{self.config.epochs}", "ex", expected) as progress:
            for step in steps:
                result = self.take(step, last=self.progress.taken + 1 == len(every))
                for name, loss in zip(result.objectives, result.losses, strict=True):
                    latest[name] = f"{loss:.3f}"
                progress.update(result.examples)
                if self.progress.step % LOG_EVERY == 0:
                    progress.set_postfix(latest, refresh=False)
            progress.total = progress.n  # short last batches: the bar ends full
            progress.refresh()

    def take(self, drawn: np.ndarray, last: bool) -> StepResult:
        """A step, whole whatever signals come, and a checkpoint where it is time for one."""
        begin, progress = time.perf_counter(), self.progress
        with self.interrupts.held():
            result = self.train_step(drawn)
            progress.taken += 1
            if last:
                progress.epoch, progress.taken = progress.epoch + 1, 0
            progress.seconds += time.perf_counter() - begin
        self.stop_if_asked()
        if progress.skipped >= self.control.skip_limit:
            self.save()
            self.processes.gather(None)
            why = self.optimizer_step.why_skipped
            raise RunError(f"{progress.skipped} steps in a row were left out; {why}")
        if self.control.checkpoint_every.due(progress.step - self.kept[0], self.kept_at):
            self.save()
        return result

    def train_step(self, drawn: np.ndarray) -> StepResult:
        """One optimiser step on the next batches of the tasks `drawn`."""
        return self.optimizer_step(drawn, self.progress)

    def stop_if_asked(self) -> None:
        """KeyboardInterrupt where any process got a signal while signals were held.

        Nobody leaves before the checkpoint stands: torchrun ends the others when one has left.
        """
        if self.processes.any(self.interrupts.asked, self.model.bi_encoder.device):
            self.save()
            self.processes.gather(None)
            raise KeyboardInterrupt

    def finish_epoch(self, metrics: Metrics) -> bool:
        """Log the dev metrics, keep the weights if they are the best, write a checkpoint.

        Says whether they are the best.
        """
        with self.interrupts.held():
            better = self.score(metrics)
            if better and self.processes.first:
                publish(self.best_folder, self.model.save, self.checkpoints.config)
            if self.control.every_epoch:
                self.save()
        self.processes.gather(None)  # nobody goes on before the checkpoint stands
        return better

    def score(self, metrics: Metrics) -> bool:
        """Add the dev metrics to the history; whether they are the best."""
        progress = self.progress
        score = selection_score(metrics, self.tasks)
        progress.history.append(
            {
                "epoch": progress.epoch,
                "step": progress.step,
                "selection_score": score,
                "dev": metrics | overall(metrics),
            }
        )
        self.telemetry.scalars(
            {f"dev/{task}/{k}": v for task, found in metrics.items() for k, v in found.items()}
            | {"dev/selection_score": score},
            progress.step,
        )
        better = score > progress.best_score or self.config.keep == "last"
        if better:
            progress.best_score, progress.best_epoch = score, progress.epoch
        return better

    @property
    def moment(self) -> tuple[int, int]:
        """Steps taken and epochs scored."""
        return self.progress.step, len(self.progress.history)

    def save(self) -> None:
        """Write a checkpoint, if there is anything new and all of the model is finite."""
        if not self.processes.first or self.moment == self.kept:
            return
        if not finite(self.model):
            print("no checkpoint: the weights are not finite; the last one stays", flush=True)
            return
        with self.interrupts.held():
            self.telemetry.flush()
            others = {n: r.state_dict() for n, r in self.regularizers.items()}
            step = self.progress.step
            self.checkpoints.save(step, self.model, self.optimizer, state_of(self), others)
        self.kept, self.kept_at = self.moment, time.monotonic()

    def load_best(self) -> None:
        """Put the best epoch's weights into the model."""
        self.model.load(best_weights(self.folder, self.checkpoints.config))
