"""The training loop for 1..n tasks: plan -> batches -> gradient -> optimiser -> dev scores."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn.utils import clip_grad_norm_

from common.environment import now
from common.errors import NotFiniteError, RunError
from common.progress import bar
from multitask.callbacks import Callbacks, EpochEnd, TensorBoard
from multitask.checkpoint import load_last, save, save_last
from multitask.combiners import Combined, Setup
from multitask.control import Interrupts, RunControl
from multitask.distributed import Processes
from multitask.loop.evaluation import Metrics, counted, evaluate, selection_score
from multitask.loop.gradients import check_finite
from multitask.loop.progress import Progress
from multitask.loop.step import StepGradient, StepResult
from multitask.loop.step_losses import StepLosses
from multitask.loop.streams import make_streams, next_batches
from multitask.loop.telemetry import LOG_EVERY, MEASURE_EVERY, Telemetry
from multitask.model import EncoderWithHeads
from multitask.optimizer import scheduled
from multitask.plan import build_plan
from multitask.runs import Run
from multitask.settings.config import RunConfig
from tasks.base import Task
from tasks.data import Splits
from tasks.metrics import overall

SKIPPED = "left out: not finite"  # status of a step
SKIP_LIMIT = 10  # steps in a row that are left out, after which the run ends
SAVE_EVERY = 600.0  # seconds between checkpoints within an epoch


class Trainer:
    """The training of a model on the `train` splits; `dev` splits select the best epoch."""

    def __init__(
        self,
        model: EncoderWithHeads,
        tasks: Mapping[str, Task],
        splits: Splits,
        config: RunConfig,
        folder: Path,
        processes: Processes = Processes(),
        control: RunControl = RunControl(),
    ) -> None:
        self.model, self.tasks, self.splits = model, tasks, splits
        self.config, self.folder = config, folder
        self.processes, self.control = processes, control
        train = [splits[name]["train"].examples for name in tasks]
        self.plan = build_plan(config, list(map(len, train)), [one.available for one in train])
        self.streams = make_streams(config, tasks, splits)
        objectives = tuple(name for task in tasks.values() for name in task.objectives)
        combined = objectives if config.balance is None else tuple(tasks)
        self.combiner = config.combiner.build(Setup(combined, config.seed))
        losses = StepLosses(model, tasks, splits, config, processes)
        self.gradient = StepGradient(losses, self.combiner)
        self.optimizer = config.optimizer.build(model)
        self.peak_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.progress = Progress()
        self.best_dev: tuple[Metrics, Mapping[str, np.ndarray]] | None = None
        self.boards = [TensorBoard(folder)] if control.tensorboard and processes.first else []
        self.callbacks = Callbacks((*self.boards, *control.callbacks) if processes.first else ())
        self.telemetry = Telemetry(folder if processes.first else None, self.callbacks.scalars)
        steps = [len(self.plan.steps(epoch + 1)) for epoch in range(config.epochs)]
        self.probe_steps = sum(steps[: config.probe_epochs])
        self.total_steps = losses.total_steps = sum(steps)
        self.interrupts = Interrupts(processes.count)
        self.saved_position, self.saved_at = self.position, time.monotonic()  # last checkpoint
        self.began = now()  # for a resumed run, the time of its first start
        self.skip_reason = ""  # of the last skipped step

    def fit(self) -> None:
        """Train to the last epoch, or until `patience` epochs bring no better score.

        On SIGINT or SIGTERM, finish the step, write a checkpoint and raise KeyboardInterrupt.
        """
        # With several processes, none may stop before the others, which wait for its messages.
        try:
            with self.interrupts.deferred() if self.processes.count > 1 else nullcontext():
                for board in self.boards:
                    board.first_step = self.progress.step + 1
                self.train_and_score()
        except KeyboardInterrupt:
            self.interrupts.first_signal = self.interrupts.first_signal or time.monotonic()
            self.save()
            raise
        finally:
            self.telemetry.close()
            for board in self.boards:
                board.close()

    def train_and_score(self) -> None:
        if self.config.pretrains and not self.progress.before:
            self.progress.before = self.evaluate()[0]
        while not self.progress.finished(self.config):
            if self.progress.due(self.config):
                self.score_epoch()
            else:
                self.train_epoch(self.progress.epoch + 1)
            self.stop_if_requested()
        if 0 < self.progress.step <= self.progress.skipped:
            raise RunError(f"all {self.progress.step} steps were skipped; {self.skip_reason}")

    def train_epoch(self, epoch: int) -> None:
        """Take the remaining steps of an epoch, with a progress bar that counts examples."""
        if self.config.probe_epochs:
            probes = epoch <= self.config.probe_epochs
            self.model.freeze_encoder(probes or self.config.freeze_encoder)
        self.model.train()
        self.gradient.losses.epoch = epoch
        metrics = {name: task.kind.main_metric for name, task in self.tasks.items()}
        every = self.plan.steps(epoch, self.progress.figures(metrics))
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
            progress.total = progress.n  # the last batches are smaller: fill the bar
            progress.refresh()

    def take(self, drawn: np.ndarray, last: bool) -> StepResult:
        """Take a complete step in spite of signals, and write a checkpoint if one is due."""
        begin, progress = time.perf_counter(), self.progress
        with self.interrupts.deferred():
            result = self.train_step(drawn)
            progress.taken += 1
            if last:
                progress.epoch, progress.taken = progress.epoch + 1, 0
                self.combiner.end_epoch()
            progress.seconds += time.perf_counter() - begin
        self.stop_if_requested()
        if progress.skipped >= SKIP_LIMIT:
            self.save()
            self.processes.gather(None)
            raise RunError(f"{progress.skipped} steps in a row were skipped; {self.skip_reason}")
        steps, every = progress.step - self.saved_position[0], self.control.checkpoint_every
        if (every and steps >= every) or time.monotonic() - self.saved_at >= SAVE_EVERY:
            self.save()
        return result

    def train_step(self, drawn: np.ndarray) -> StepResult:
        """Take an optimiser step on the next batches of the tasks with the indices `drawn`.

        A step is skipped if its loss or gradient is not finite. Raise RunError if the weights are
        no longer finite.
        """
        batches, progress = next_batches(self.streams, drawn), self.progress
        number = progress.step
        factor = scheduled(self.config.lr_schedule, number, self.probe_steps, self.total_steps)
        for group, peak in zip(self.optimizer.param_groups, self.peak_rates, strict=True):
            group["lr"] = peak * factor
        progress.step += 1
        try:
            result = self.gradient(batches, number % MEASURE_EVERY == 0, number)
            norm = float(clip_grad_norm_(self.model.parameters(), self.config.clip))
            check_finite("gradient", [norm], ["this step"])
        except NotFiniteError as error:
            self.skip(error)
            result = StepResult((), np.zeros(0), Combined(np.zeros(0), SKIPPED), {}, 0)
            figures = {}
        else:
            self.optimizer.step()
            self.model.zero_grad(set_to_none=True)  # also what the optimiser leaves out
            self.gradient.after_step(batches, number, result)
            losses = dict(zip(result.objectives, result.losses.tolist(), strict=True))
            progress.add_losses(losses, {name: len(several) for name, several in batches.items()})
            progress.examples += result.examples
            progress.skipped = 0
            figures = {"gradient_norm": norm, "learning_rate_factor": factor}
        self.telemetry.step(progress.step, result, figures)
        return result

    def skip(self, error: NotFiniteError) -> None:
        """Count a skipped step; raise RunError if the weights are no longer finite."""
        self.model.zero_grad(set_to_none=True)
        self.progress.skipped += 1
        self.skip_reason = f"step {self.progress.step}: {error}"
        print(f"skipped {self.skip_reason}", flush=True)
        if not self.model.finite:
            raise RunError(f"the weights are no longer finite; {self.skip_reason}")

    def evaluate(self) -> tuple[Metrics, dict[str, np.ndarray]]:
        """Return metrics and scores of every task on dev."""
        dev = {name: self.splits[name]["dev"] for name in self.tasks}
        return evaluate(self.model, self.tasks, dev, self.processes)

    def score_epoch(self) -> None:
        """Score dev, keep the best weights and save; callbacks may end the training."""
        metrics, scores = self.evaluate()
        score, progress = selection_score(metrics, self.tasks), self.progress
        with self.interrupts.deferred():
            points = {f"dev/{t}/{k}": v for t, found in metrics.items() for k, v in found.items()}
            self.callbacks.scalars(points | {"dev/selection_score": score}, progress.step)
            found = metrics | overall(counted(metrics, self.tasks))
            better = progress.add_score(score, found, keep_last=self.config.keep == "last")
            if better:
                self.best_dev = metrics, scores
                if self.processes.first:
                    save(Run(self.folder), "best", self.model.save, {})
            self.save()
        self.processes.gather(None)  # all processes wait for the checkpoint
        end = EpochEnd(
            epoch=progress.epoch,
            epochs=self.config.epochs,
            step=progress.step,
            seconds=progress.seconds,
            metrics=deepcopy(progress.history[-1]["dev"]),
            score=score,
            better=better,
            folder=self.folder,
            model=self.model,
        )
        if self.processes.largest(self.callbacks.stops(end)):
            progress.stopped = True
            self.save()  # a resumed run does not go on training

    def stop_if_requested(self) -> None:
        """Save and raise KeyboardInterrupt if any process received a signal."""
        # All wait for the checkpoint: torchrun ends the other processes as soon as one ends.
        if self.processes.largest(self.interrupts.stop_requested):
            self.save()
            self.processes.gather(None)
            raise KeyboardInterrupt

    @property
    def position(self) -> tuple[int, int, bool]:
        """Number of steps taken, and of epochs with a dev score; whether a callback stopped it."""
        return self.progress.step, len(self.progress.history), self.progress.stopped

    def save(self) -> None:
        """Write a checkpoint if the progress has changed and the model is finite."""
        if not self.processes.first or self.position == self.saved_position:
            return
        if not self.model.finite:
            print("no checkpoint: the weights are not finite; the previous one is kept", flush=True)
            return
        with self.interrupts.deferred():
            self.telemetry.flush()
            save_last(Run(self.folder), self.model, self.optimizer, self.state_dict())
        self.saved_position, self.saved_at = self.position, time.monotonic()

    def resume(self) -> bool:
        """Restore the last checkpoint; False without any, RunError if it cannot be used."""
        state = load_last(Run(self.folder), self.model, self.optimizer)
        if state is None:
            if self.telemetry.forget_after(0):  # of a run that ended before its first checkpoint
                print("no checkpoint to resume from: the run starts again", flush=True)
            return False
        self.load_state_dict(state)
        if self.progress.best_epoch:
            Run(self.folder).weights()  # are there, and intact
        self.saved_position = self.position
        self.telemetry.forget_after(self.progress.step)
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON, except weights and optimiser."""
        return {
            "progress": asdict(self.progress),
            "streams": {stream.task: stream.position for stream in self.streams},
            "combiner": self.combiner.state_dict(),
            "processes": self.processes.count,
            "began": self.began,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a `state_dict`; raise RunError for another number of processes."""
        if state["processes"] != self.processes.count:
            line = f"expected {state['processes']} processes, as at the start of the run"
            raise RunError(f"--resume: {line}, found {self.processes.count}")
        self.progress = Progress(**state["progress"])
        self.began = str(state["began"])
        for stream in self.streams:
            number, taken = state["streams"][stream.task]
            stream.position = (number, taken)
        self.combiner.load_state_dict(state["combiner"])
