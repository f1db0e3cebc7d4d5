"""The one training loop, for 1..n tasks: batch -> embed -> losses -> rows -> Gram -> step."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from minbert.linear_choice import choose_linear
from minbert.progress import bar
from multitask.checkpoint import load_training, publish, published, save_training
from multitask.combiners import COMBINERS
from multitask.config import RunConfig
from multitask.evaluation import Metrics, evaluate, overall, selection_score
from multitask.gradients import GradientRows
from multitask.model import MultiTaskModel
from multitask.optimizer import build_optimizer, learning_rate_factor, set_learning_rate
from multitask.run_folder import RunError
from multitask.sampling import SAMPLERS, BatchStream, Workload
from multitask.telemetry import Scalars
from tasks.base import Task
from tasks.data import Split

LOG_EVERY = 10  # steps between two points of the training curves


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
    history: list[dict[str, Any]] = field(default_factory=list)


class Trainer:
    """Trains one model on the `train` splits and keeps the best epoch by the `dev` splits."""

    def __init__(
        self,
        model: MultiTaskModel,
        tasks: Mapping[str, Task],
        splits: Mapping[str, Mapping[str, Split]],
        config: RunConfig,
        folder: Path,
    ) -> None:
        self.model, self.tasks, self.splits = model, tasks, splits
        self.config, self.folder = config, folder
        self.names = list(tasks)
        train = [splits[name]["train"] for name in self.names]
        self.work = Workload(
            sizes=tuple(len(split.examples) for split in train),
            batch_size=config.batch_size,
            batches_per_step=config.batches_per_step,
            epochs=config.epochs,
            steps_per_epoch=config.steps_per_epoch,
            seed=config.seed,
        )
        self.sampler = SAMPLERS[config.sampling](self.work)
        self.streams = [
            BatchStream(split.lengths, config.batch_size, config.seed, name)
            for name, split in zip(self.names, train, strict=True)
        ]
        self.combiner = COMBINERS[config.combiner](config.seed)
        self.rows = GradientRows(list(model.bi_encoder.parameters()))
        self.optimizer = build_optimizer(model, config)
        self.total_steps = sum(len(self.steps(e + 1)) for e in range(config.epochs))
        self.progress = Progress()
        self.scalars = Scalars(folder / "tensorboard")
        model.dropout_stream.reset(config.seed)

    @property
    def best_folder(self) -> Path:
        return self.folder / "checkpoint" / "best"

    @property
    def last_folder(self) -> Path:
        return self.folder / "checkpoint" / "last"

    def steps(self, epoch: int) -> list[np.ndarray]:
        """Task indices of the batches of each step of an epoch (from 1)."""
        batches = self.sampler.batches(epoch)
        size = self.config.batches_per_step
        return [batches[i : i + size] for i in range(0, len(batches), size)]

    def fit(self) -> None:
        """Train to the last epoch, or until `patience` epochs brought nothing better."""
        patience = self.config.patience or self.config.epochs
        dev = {name: self.splits[name]["dev"] for name in self.names}
        try:
            while self.progress.epoch < self.config.epochs:
                if self.progress.epoch - self.progress.best_epoch >= patience:
                    break
                self.train_epoch(self.progress.epoch + 1)
                metrics, _ = evaluate(self.model, self.tasks, dev, self.config.precision)
                self.finish_epoch(metrics)
        finally:
            self.scalars.close()

    def train_epoch(self, epoch: int) -> None:
        """Every step of one epoch, with a progress bar that counts examples."""
        self.model.train()
        steps = self.steps(epoch)
        begin = time.perf_counter()
        expected = sum(len(step) for step in steps) * self.config.batch_size
        latest: dict[str, float] = {}  # the last loss of each task, for the bar
        with bar(f"epoch {epoch}/{self.config.epochs}", "ex", expected) as progress:
            for step in steps:
                losses, examples, figures = self.train_step(step)
                latest |= losses
                progress.update(examples)
                self.progress.examples += examples
                if self.progress.step % LOG_EVERY == 0 or self.progress.step == self.total_steps:
                    shown = {name: f"{loss:.3f}" for name, loss in latest.items()}
                    progress.set_postfix(shown, refresh=False)
                    self.scalars.write(
                        {f"train/{name}/loss": value for name, value in losses.items()} | figures,
                        self.progress.step,
                    )
            progress.total = progress.n  # short last batches: the bar ends full
            progress.refresh()
        self.progress.seconds += time.perf_counter() - begin
        self.progress.epoch = epoch

    def train_step(self, drawn: np.ndarray) -> tuple[dict[str, float], int, dict[str, float]]:
        """One optimiser step: losses by task, examples used, figures to log.

        Batches of the same task are averaged into one objective. Each objective is differentiated
        alone; where there are several, the combiner sees their Gram matrix on the shared encoder,
        while every head keeps its own gradient.
        """
        objectives = {int(task): int((drawn == task).sum()) for task in np.unique(drawn)}
        surgery = len(objectives) > 1 and self.combiner.needs_gram
        losses, examples = {}, 0
        for task, count in objectives.items():
            name = self.names[task]
            losses[name] = 0.0
            for _ in range(count):
                loss, size = self.batch_loss(task)
                if not torch.isfinite(loss):
                    raise RunError(
                        f"step {self.progress.step + 1}: expected a finite loss of {name}, "
                        f"found {loss.item()}; a lower --lr, --head-lr or --clip may help"
                    )
                (loss / count).backward()
                losses[name] += loss.item() / count
                examples += size
            if surgery:
                self.rows.collect()
        figures = {}
        if surgery:
            gram = self.rows.gram()
            combined = self.combiner.combine(gram, np.array(list(losses.values())))
            self.rows.write_back(combined.weights)
            statuses = self.progress.statuses
            statuses[combined.status] = statuses.get(combined.status, 0) + 1
            figures = step_figures([self.names[task] for task in objectives], gram, combined)
        factor = learning_rate_factor(self.progress.step, self.total_steps, self.config.warmup)
        set_learning_rate(self.optimizer, factor)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        figures |= {"train/gradient_norm": float(norm), "train/learning_rate_factor": factor}
        return losses, examples, figures

    def batch_loss(self, task: int) -> tuple[torch.Tensor, int]:
        """The sum of a task's losses on its next batch, and the batch's examples."""
        name = self.names[task]
        split = self.splits[name]["train"]
        rows = self.streams[task].next()
        embeddings = self.model.embed(split.batch(rows), self.config.precision)
        targets = split.targets(rows, embeddings[0].device)
        losses = self.tasks[name].losses(self.model.heads[name], embeddings, targets)
        return torch.stack(list(losses.values())).sum(), len(rows)

    def finish_epoch(self, metrics: Metrics) -> None:
        """Log the dev metrics, keep the weights if they are the best, write the checkpoint."""
        progress = self.progress
        score = selection_score(metrics, self.tasks)
        progress.history.append(
            {"epoch": progress.epoch, "step": progress.step, "selection_score": score}
            | {"dev": metrics | overall(metrics)}
        )
        self.scalars.write(
            {f"dev/{task}/{k}": v for task, found in metrics.items() for k, v in found.items()}
            | {"dev/selection_score": score},
            progress.step,
        )
        if score > progress.best_score:
            progress.best_score, progress.best_epoch = score, progress.epoch
            publish(self.best_folder, self.model.save)
        state = {
            "progress": asdict(progress),
            "streams": [stream.position for stream in self.streams],
            "combiner": self.combiner.state_dict(),
            "dropout": self.model.dropout_stream.state_dict(),
            "linear": self.config.linear,
        }
        save_training(self.last_folder, self.model, self.optimizer, state)

    def resume(self) -> bool:
        """Go back to the last finished epoch; False where there is no checkpoint."""
        folder = published(self.last_folder)
        if folder is None:
            return False
        state = load_training(folder, self.model, self.optimizer)
        self.progress = Progress(**state["progress"])
        for stream, position in zip(self.streams, state["streams"], strict=True):
            stream.position = (position[0], position[1])
        self.combiner.load_state_dict(state["combiner"])
        self.model.dropout_stream.load_state_dict(state["dropout"])
        self.model.bi_encoder.encoder.use_linear(choose_linear(state["linear"]).kernel)
        self.scalars.forget_after(self.progress.step)
        return True

    def forget(self) -> None:
        """Delete what only an unfinished run needs: the optimiser's state is twice the weights."""
        shutil.rmtree(self.last_folder, ignore_errors=True)

    def load_best(self) -> None:
        """Put the best epoch's weights into the model."""
        folder = published(self.best_folder)
        assert folder is not None, "no epoch was finished"
        self.model.load(folder)


def step_figures(names: list[str], gram: np.ndarray, combined: Any) -> dict[str, float]:
    """Cosines between the objectives' gradients and their weights, for TensorBoard."""
    norms = np.sqrt(np.maximum(np.diag(gram), 1e-30))
    figures = {
        f"train/cosine/{names[i]}-{names[j]}": float(gram[i, j] / (norms[i] * norms[j]))
        for i in range(len(names))
        for j in range(i)
    }
    return figures | {
        f"train/{name}/weight": float(weight)
        for name, weight in zip(names, combined.weights, strict=True)
    }
