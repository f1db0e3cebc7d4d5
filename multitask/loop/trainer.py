"""The training loop for 1..n tasks: plan -> batches -> gradient -> optimiser -> dev scores."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn.utils import clip_grad_norm_

from common.environment import now
from common.errors import RunError
from common.progress import bar
from multitask.distributed import Processes
from multitask.loop.batches import BatchStream, build_plan, make_pass, next_batches
from multitask.loop.evaluation import Metrics, evaluate, selection_score
from multitask.loop.gradients import check_finite
from multitask.loop.step import StepGradient, StepResult
from multitask.loop.telemetry import LOG_EVERY, MEASURE_EVERY, Telemetry
from multitask.model import EncoderWithHeads
from multitask.run_folder import load_last, save, save_last
from multitask.runs import Run, RunControl
from multitask.settings.config import RunConfig
from tasks.base import Task
from tasks.data import Splits
from tasks.metrics import overall

SAVE_EVERY = 600.0  # seconds between checkpoints within an epoch


@dataclass
class Progress:
    """Counts and scores of a run, part of the trainer's `state_dict`."""

    epoch: int = 0  # finished epochs
    taken: int = 0  # steps of the next epoch
    step: int = 0
    seconds: float = 0.0  # of training, without evaluation
    examples: int = 0
    best_score: float = float("-inf")
    best_epoch: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)  # dev metrics after an epoch
    # Pre-training: dev metrics before the first step.
    before: dict[str, dict[str, float]] = field(default_factory=dict)


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
        train = {name: splits[name]["train"] for name in tasks}
        examples = [one.examples for one in train.values()]
        self.plan = build_plan(config, list(map(len, examples)), [e.available for e in examples])
        self.total_steps = sum(len(self.plan.steps(e + 1)) for e in range(config.epochs))
        self.streams = [
            BatchStream(make_pass(config, task, train[name]), config.seed, name)
            for name, task in tasks.items()
        ]
        objectives = [name for task in tasks.values() for name in task.objectives]
        combined = objectives if config.balance is None else tasks
        self.combiner = config.combiner.for_run(len(combined), config.seed)
        self.gradient = StepGradient(
            model, tasks, splits, config, self.combiner, processes, self.total_steps
        )
        self.optimizer = config.optimizer.build(model)
        self.peak_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.progress = Progress()
        self.best_dev: tuple[Metrics, Mapping[str, np.ndarray]] | None = None
        self.callbacks = control.callbacks if processes.first else ()
        log = folder if processes.first else None
        self.telemetry = Telemetry(log, self.callbacks, control.tensorboard)
        self.saved_step, self.saved_at = 0, time.monotonic()  # of the last checkpoint
        self.began = now()  # for a resumed run, the time of its first start

    def fit(self) -> None:
        """Train to the last epoch, or until `patience` epochs bring no better score.

        An interruption may come at any moment: the last checkpoint is always a valid one.
        """
        config, progress = self.config, self.progress
        patience = config.patience or config.epochs
        try:
            if config.pretrains and not progress.before:
                progress.before = self.evaluate()[0]
            while True:
                ended = progress.epoch >= config.epochs
                if progress.epoch and (ended or progress.epoch % config.evaluate_every == 0):
                    scored = [one["epoch"] for one in progress.history]
                    if progress.epoch not in scored:  # it may be, in a resumed run
                        self.score_epoch()
                    scores = [one["selection_score"] for one in progress.history]
                    best = progress.history[scores.index(max(scores))]["epoch"]
                    if ended or progress.epoch - best >= patience:
                        break
                self.train_epoch(progress.epoch + 1)
        finally:
            self.telemetry.close()

    def train_epoch(self, epoch: int) -> None:
        """Take the remaining steps of an epoch, with a progress bar that counts examples."""
        self.model.train()
        self.gradient.epoch = epoch
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
            progress.total = progress.n  # the last batches are smaller: fill the bar
            progress.refresh()

    def take(self, drawn: np.ndarray, last: bool) -> StepResult:
        """Take a step, which may be the last of its epoch, and write a checkpoint if one is due."""
        begin, progress = time.perf_counter(), self.progress
        result = self.train_step(drawn)
        progress.taken += 1
        if last:
            progress.epoch, progress.taken = progress.epoch + 1, 0
        progress.seconds += time.perf_counter() - begin
        steps, every = progress.step - self.saved_step, self.control.checkpoint_every
        if (every and steps >= every) or time.monotonic() - self.saved_at >= SAVE_EVERY:
            self.save()
        return result

    def train_step(self, drawn: np.ndarray) -> StepResult:
        """Take an optimiser step on the next batches of the tasks with the indices `drawn`.

        Raise RunError if the loss or gradient is not finite.
        """
        batches, progress = next_batches(self.streams, drawn), self.progress
        number = progress.step
        factor = self.config.optimizer.factor(number, self.total_steps)
        for group, peak in zip(self.optimizer.param_groups, self.peak_rates, strict=True):
            group["lr"] = peak * factor
        progress.step += 1
        result = self.gradient(batches, number % MEASURE_EVERY == 0, number)
        norm = float(clip_grad_norm_(self.model.parameters(), self.config.clip))
        check_finite("gradient", [norm], [f"step {progress.step}"])
        self.optimizer.step()
        self.model.zero_grad(set_to_none=True)  # also what the optimiser leaves out
        self.gradient.after_step(batches, number, result)
        progress.examples += result.examples
        figures = {"gradient_norm": norm, "learning_rate_factor": factor}
        self.telemetry.step(progress.step, result, figures)
        return result

    def evaluate(self) -> tuple[Metrics, dict[str, np.ndarray]]:
        """Return metrics and scores of every task on dev."""
        dev = {name: self.splits[name]["dev"] for name in self.tasks}
        return evaluate(self.model, self.tasks, dev, self.processes)

    def score_epoch(self) -> None:
        """Score dev, keep the best weights, save, and call the callbacks."""
        metrics, scores = self.evaluate()
        score, progress = selection_score(metrics, self.tasks), self.progress
        points = {f"dev/{t}/{k}": v for t, found in metrics.items() for k, v in found.items()}
        self.telemetry.draw(points | {"dev/selection_score": score}, progress.step)
        counts = {"epoch": progress.epoch, "step": progress.step, "selection_score": score}
        progress.history.append(counts | {"dev": metrics | overall(metrics)})
        if score > progress.best_score or self.config.keep == "last":
            progress.best_score, progress.best_epoch = score, progress.epoch
            self.best_dev = metrics, scores
            if self.processes.first:
                save(Run(self.folder), "best", self.model.save, {})
        self.save()
        for one in self.callbacks:
            call = getattr(one, "on_epoch_end", None if hasattr(one, "on_scalars") else one)
            if call is not None:
                call(self)
        self.processes.gather(None)  # all processes wait for the checkpoint and the callbacks

    def save(self) -> None:
        """Write a checkpoint; it replaces the last one when it is complete."""
        if self.processes.first:
            self.telemetry.flush()
            save_last(Run(self.folder), self.model, self.optimizer, self.state_dict())
        self.saved_step, self.saved_at = self.progress.step, time.monotonic()

    def resume(self) -> bool:
        """Restore the last checkpoint; False without any, RunError if it cannot be used."""
        state = load_last(Run(self.folder), self.model, self.optimizer)
        if state is None:
            self.telemetry.forget_after(0)  # of a run that ended before its first checkpoint
            return False
        self.load_state_dict(state)
        if self.progress.best_epoch:
            Run(self.folder).weights()  # are there, and intact
        self.saved_step = self.progress.step
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
