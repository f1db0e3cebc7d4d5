"""Measurement of losses and gradients after each epoch of a joint run."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import torch

from common.atomic_files import remove
from common.errors import RunError
from common.progress import bar
from common.random_generators import generator
from multitask.affinity.measures import FEWEST_ROUNDS, MeasureFiles, Measures
from multitask.affinity.sketch import Sketch
from multitask.assembly import assemble
from multitask.callbacks import EpochEnd, TrainStart
from multitask.gram_matrices import whole_gram
from multitask.loop.gradients import GradientRows, check_finite
from multitask.loop.shared_rows import Unit
from multitask.loop.step_losses import StepLosses
from multitask.loop.streams import make_pass
from multitask.settings.config import RunConfig
from multitask.storage.run_folder import RunFolder


class Probe:
    """The tasks, the data and a model of its own, into which weights of the run are loaded.

    Everything is computed in fp32 and without dropout. The run's own model and random generators
    are not touched.
    """

    def __init__(self, config: RunConfig) -> None:
        self.config = config.changed(precision="fp32")
        with redirect_stdout(io.StringIO()):  # the run prints the same notices
            self.tasks, self.model, splits = assemble(self.config)
        self.splits = {n: {"train": several["train"].separate} for n, several in splits.items()}
        self.losses = StepLosses(self.model, self.tasks, self.splits, {}, self.config)
        sections = self.model.sections()
        self.rows = GradientRows(sections, self.model.make_words_sparse())
        self.sketch = Sketch(self.rows, config.seed)
        self.parts = tuple(sections)

    def measure(self, weights: Path, epoch: int, rounds: int) -> Measures:
        """Return the measures with the weights of a folder, on at most `rounds` batches per task.

        No training example is in two rounds. The batches depend on seed and epoch.
        """
        begin = time.perf_counter()
        self.model.load(weights)
        self.model.eval()
        self.losses.epoch = epoch
        batches = self.batches(epoch, rounds)
        count = len(next(iter(batches.values())))
        found = []
        with bar(f"measure epoch {epoch}", "round", count) as progress:
            for number in range(count):
                found.append(self.measure_round([one[number] for one in batches.values()]))
                progress.update()
        losses, grams, sketches = (np.stack(several) for several in zip(*found, strict=True))
        seconds = round(time.perf_counter() - begin, 2)
        return Measures(losses, grams, sketches.astype(np.float32), self.parts, seconds)

    def batches(self, epoch: int, rounds: int) -> dict[str, list[np.ndarray]]:
        """Return an even number of batches of each task, at most `rounds`, from one pass."""
        found = {}
        for name, task in self.tasks.items():
            shuffle = generator(self.config.seed, f"affinity of {name}", epoch)
            found[name] = make_pass(self.config, task, self.splits[name]["train"])(shuffle)
        count = min(rounds, *map(len, found.values())) // 2 * 2
        if count < FEWEST_ROUNDS:
            few = min(found, key=lambda name: len(found[name]))
            size = self.config.batch_size
            line = f"expected {FEWEST_ROUNDS} or more batches of {size} examples of each task"
            line += f", found {len(found[few])} of {few}"
            raise RunError(f"affinity: {line}; a smaller batch size or more examples give more")
        return {name: several[:count] for name, several in found.items()}

    def measure_round(self, batches: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return losses (m,), Gram matrices (P, m, m) and sketches (m, K).

        Raise RunError for negative losses and NotFiniteError for gradients that are not finite.
        """
        units = [Unit((name,), [rows]) for name, rows in zip(self.tasks, batches, strict=True)]
        losses = []
        for place, unit in enumerate(units):
            losses.append(self.differentiated_loss(unit))
            self.rows.collect(place)
        self.model.zero_grad(set_to_none=True)  # those of the heads
        self.rows.reduce()
        grams = self.rows.grams()
        squares = np.diag(whole_gram(grams))
        names = list(self.tasks)
        check_finite("loss", losses, names)
        check_finite("gradient", squares, names)
        if min(losses) < 0:
            task, loss = names[int(np.argmin(losses))], min(losses)
            raise RunError(f"affinity: expected losses of 0 or more, found {loss:.4g} of {task}")
        sketches = np.stack([self.sketch(place).cpu().numpy() for place in range(len(units))])
        self.rows.forget()
        return np.array(losses), np.stack(list(grams.values())), sketches

    def differentiated_loss(self, unit: Unit) -> float:
        """Return the loss of a task on its batch, the sum of its objectives; set gradients."""
        total = 0.0
        for part in self.losses.parts(unit):
            found = self.losses.forward(unit, part, step=0)
            loss = torch.stack(list(found.by_objective.values())).sum()
            found.backward(loss)
            total += float(loss.detach())
        return total


class MeasureEpochs:
    """A callback that measures the weights of each epoch once, in `files`.

    The weights are those in the run's `checkpoint/best`, which has the last epoch (`keep=last`).
    If a run was killed while it measured, its next start measures before it trains on.
    """

    def __init__(self, files: MeasureFiles) -> None:
        self.files = files

    def on_train_begin(self, start: TrainStart) -> None:
        """Check that everything can be measured, before the first step."""
        self.config, self.probe = start.config, Probe(start.config)
        self.probe.batches(1, self.files.rounds)
        if not start.epochs:
            remove(self.files.folder, ignore_errors=True)  # of an earlier run in this place
            return
        self.files.stored(self.config, start.epochs - 1)
        self.measure(start.epochs)

    def on_epoch_end(self, end: EpochEnd) -> None:
        self.measure(end.epoch)

    def measure(self, epoch: int) -> None:
        """Measure the current weights of the run unless this epoch's measures are stored."""
        if self.files.load(self.config, epoch) is None:
            best = RunFolder(self.files.run).best
            found = self.probe.measure(best, epoch, self.files.rounds)
            self.files.save(found, self.config, epoch)
