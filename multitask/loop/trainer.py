"""The training loop for 1..n tasks: plan -> batches -> gradient -> optimiser -> dev scores."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn.utils import clip_grad_norm_

from common.errors import RunError
from common.progress import bar
from minbert.device import now
from multitask.assembly import assemble
from multitask.distributed import Processes
from multitask.loop.batches import BatchStream, Plan, make_pass, next_batches
from multitask.loop.evaluation import Metrics, score_split, selection_score
from multitask.loop.gradients import check_finite
from multitask.loop.step import StepGradient, StepResult
from multitask.loop.telemetry import LOG_EVERY, MEASURE_EVERY, Telemetry
from multitask.run_folder import load_last, save, save_last
from multitask.runs import Run
from multitask.settings.config import RunConfig
from tasks.metrics import overall

SAVE_EVERY = 600.0  # seconds between checkpoints within an epoch


@dataclass
class Progress:
    """Counts and scores of a run, which a checkpoint keeps."""

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
    """The training of a configuration on `train` splits; `dev` splits select the best epoch.

    The other arguments are as in `train`.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: Path,
        processes: Processes = Processes(),
        callbacks: "Sequence[Callable[[Trainer], object]]" = (),
        checkpoint_every: int | None = None,
        tensorboard: bool = True,
    ) -> None:
        self.config, self.folder, self.processes = config, folder, processes
        self.checkpoint_every = checkpoint_every or float("inf")
        self.tasks, self.model, self.splits = tasks, model, splits = assemble(config)
        train = {name: splits[name]["train"] for name in tasks}
        examples = [one.examples for one in train.values()]
        self.plan = Plan(config, list(map(len, examples)), [e.available for e in examples])
        self.total_steps = sum(len(self.plan.steps(e + 1)) for e in range(config.epochs))
        self.streams = [
            BatchStream(make_pass(config, task, train[name]), config.seed, name)
            for name, task in tasks.items()
        ]
        self.gradient = StepGradient(model, tasks, splits, config, processes, self.total_steps)
        self.combiner = self.gradient.combiner
        self.optimizer = config.optimizer.build(model)
        self.peak_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.progress = Progress()
        self.best_dev: tuple[Metrics, Mapping[str, np.ndarray]] | None = None
        self.callbacks = callbacks if processes.first else ()
        self.telemetry = Telemetry(folder if processes.first else None, tensorboard)
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
                    scored = progress.history[-1]["epoch"] if progress.history else 0
                    if scored < progress.epoch:  # it may be scored, in a resumed run
                        self.score_epoch()
                    best = max(progress.history, key=itemgetter("selection_score"))
                    if ended or progress.epoch - best["epoch"] >= patience:
                        break
                self.train_epoch(progress.epoch + 1)
        finally:
            self.telemetry.close()

    def train_epoch(self, epoch: int) -> None:
        """Take the remaining steps of an epoch, and write a checkpoint after those with one due."""
        self.model.train()
        self.gradient.epoch = epoch
        progress, every = self.progress, self.plan.steps(epoch, self.progress.history)
        left = every[progress.taken :]
        expected = sum(len(drawn) for drawn in left) * self.config.batch_size
        latest: dict[str, str] = {}  # the last loss of each objective, for the bar
        with bar(f"epoch {epoch}/{self.config.epochs}", "ex", expected) as shown:
            for drawn in left:
                begin = time.perf_counter()
                result = self.train_step(drawn)
                progress.taken += 1
                if progress.taken == len(every):
                    progress.epoch, progress.taken = epoch, 0
                progress.seconds += time.perf_counter() - begin
                passed = progress.step - self.saved_step, time.monotonic() - self.saved_at
                if passed[0] >= self.checkpoint_every or passed[1] >= SAVE_EVERY:
                    self.save()
                for name, loss in zip(result.objectives, result.losses, strict=True):
                    latest[name] = f"{loss:.3f}"
                shown.update(result.examples)
                if progress.step % LOG_EVERY == 0:
                    shown.set_postfix(latest, refresh=False)
            shown.total = shown.n  # the last batches are smaller: fill the bar
            shown.refresh()

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
        scores, metrics = {}, {}
        for name, task in self.tasks.items():
            dev = self.splits[name]["dev"]
            assert dev.examples.targets is not None
            scores[name] = score_split(self.model, task, dev, self.processes)
            metrics[name] = task.kind.measure(scores[name], dev.examples.targets)
        return metrics, scores

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
            one(self)
        self.processes.gather(None)  # all processes wait for the checkpoint and the callbacks

    def save(self) -> None:
        """Write a checkpoint; it replaces the last one when it is complete."""
        if self.processes.first:
            state = {
                "progress": asdict(self.progress),
                "streams": {stream.task: stream.position for stream in self.streams},
                "combiner": self.combiner.state_dict(),
                "processes": self.processes.count,
                "began": self.began,
            }
            save_last(Run(self.folder), self.model, self.optimizer, state)
        self.saved_step, self.saved_at = self.progress.step, time.monotonic()

    def resume(self) -> bool:
        """Restore the last checkpoint; return whether there is one.

        Raise RunError if it cannot be used, also for another number of processes.
        """
        state = load_last(Run(self.folder), self.model, self.optimizer)
        if state is not None:
            if state["processes"] != self.processes.count:
                line = f"start {state['processes']} processes, as at the start of the run"
                raise RunError(f"--resume: {line}, not {self.processes.count}")
            self.progress, self.began = Progress(**state["progress"]), state["began"]
            for stream in self.streams:
                number, taken = state["streams"][stream.task]
                stream.position = (number, taken)
            self.combiner.load_state_dict(state["combiner"])
        if self.progress.best_epoch:
            Run(self.folder).weights()  # are there, and intact
        self.saved_step = self.progress.step
        self.telemetry.forget_after(self.progress.step)
        return state is not None
