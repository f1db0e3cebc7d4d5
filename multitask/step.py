"""The gradient of one step: batch -> embed -> losses -> rows -> Gram -> combined gradient."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from minbert.batching import Batch
from multitask.combiners import Combined, Combiner
from multitask.config import RunConfig
from multitask.distributed import Processes
from multitask.gradients import GradientRows
from multitask.model import MultiTaskModel
from multitask.run_folder import RunError
from tasks.base import Task
from tasks.data import Split

Batches = Mapping[str, Sequence[np.ndarray]]  # task -> rows of its batches in a step


@dataclass(frozen=True)
class StepResult:
    """What a step computed: m objectives, their losses (m,), weights, and Gram matrices (m, m).

    `grams` has one for each section of the model; it is empty where the gradients were added up
    without keeping them apart.
    """

    objectives: tuple[str, ...]
    losses: np.ndarray
    combined: Combined
    grams: Mapping[str, np.ndarray]
    examples: int


class StepGradient:
    """Computes the combined gradient of a step's batches and leaves it in the parameters.

    The combiner's weights act on the shared encoder; every head follows its own losses alone.
    """

    def __init__(
        self,
        model: MultiTaskModel,
        tasks: Mapping[str, Task],
        splits: Mapping[str, Mapping[str, Split]],
        combiner: Combiner,
        config: RunConfig,
        processes: Processes | None = None,
    ) -> None:
        self.model, self.tasks, self.splits = model, tasks, splits
        self.combiner, self.config = combiner, config
        self.processes = processes or Processes()
        self.rows = GradientRows(model.sections(), model.sparse_words(), self.processes)
        names = [name for task in tasks.values() for name in task.objectives]
        self.place = {name: index for index, name in enumerate(names)}

    def __call__(self, batches: Batches, measure: bool = False) -> StepResult:
        """One step; `measure` keeps the objectives apart even where the combiner would not.

        Batches of the same task make one objective, the mean over all their examples. Raises
        RunError for losses that are not finite.
        """
        if self.config.gradients == "representation":
            return self.through_representation(batches)
        apart = self.combiner.needs_gram or (measure and not self.model.frozen)
        losses: dict[str, Tensor] = {}
        for name, rows in batches.items():
            losses |= self.task_gradients(name, rows, apart)
        if not apart:
            self.rows.collect(0)
        found = self.reduced(losses)
        self.rows.reduce()
        if not apart:
            combined, grams = Combined(np.ones(len(losses)), "summed"), {}
            self.rows.write_back(np.ones(1))
        else:
            grams = self.rows.grams()
            combined = self.combined(np.sum(list(grams.values()), axis=0), found, losses)
            self.rows.write_back(combined.weights)
        return self.result(batches, losses, found, combined, grams)

    def task_gradients(
        self, name: str, batches: Sequence[np.ndarray], apart: bool
    ) -> dict[str, Tensor]:
        """Differentiate one task's objectives; returns this process' part of their losses.

        Each objective's gradient goes into a row of its own if they are kept `apart`.
        """
        task = self.tasks[name]
        total = sum(len(rows) for rows in batches)
        values = dict.fromkeys(
            task.objectives, torch.zeros((), device=self.model.bi_encoder.device)
        )
        begin, several = self.rows.used, len(task.objectives) > 1
        for rows in self.pieces(batches):
            batch = self.batch(name, rows)
            losses = self.losses(name, rows, batch, self.model.embed(batch, self.config.precision))
            share = len(rows) / total
            values = {key: values[key] + loss.detach() * share for key, loss in losses.items()}
            if apart and several:
                for row, loss in enumerate(losses.values(), begin):
                    (loss * share).backward(retain_graph=row < begin + len(losses) - 1)
                    self.rows.collect(row)
            else:
                (torch.stack(list(losses.values())).sum() * share).backward()
        while apart and self.rows.used < begin + len(task.objectives):
            self.rows.collect(self.rows.used)
        return values

    def through_representation(self, batches: Batches) -> StepResult:
        """Objectives of one batch, combined at its embeddings; one backward through the encoder.

        The rows are the gradients on the pooled embeddings (Sener and Koltun, 2018, section 3.3).
        """
        ((name, (whole,)),) = batches.items()
        rows = self.processes.share(whole)
        losses = dict.fromkeys(
            self.tasks[name].objectives, torch.zeros((), device=self.model.bi_encoder.device)
        )
        parts: list[Tensor] = []
        embeddings = None
        if len(rows):
            share = len(rows) / len(whole)
            batch = self.batch(name, rows)
            embeddings = self.model.embed(batch, self.config.precision)
            leaf = embeddings.detach().requires_grad_()
            losses = {k: v * share for k, v in self.losses(name, rows, batch, leaf).items()}
            for loss in losses.values():
                loss.backward(retain_graph=True)
                assert leaf.grad is not None
                parts.append(leaf.grad)
                leaf.grad = None
        else:
            self.model.dropout_stream.next_pass()
        found = self.reduced(losses)
        m = len(losses)
        matrix = torch.stack(parts).flatten(1) if parts else torch.zeros(m, 1)
        gram = self.processes.add((matrix @ matrix.T).double()).cpu().numpy()
        combined = self.combined(gram, found, losses)
        if embeddings is not None:
            weights = torch.from_numpy(combined.weights).to(matrix)
            embeddings.backward((weights @ matrix).view_as(embeddings))
        self.rows.collect(0)
        self.rows.reduce()
        self.rows.write_back(np.ones(1))
        return self.result(batches, losses, found, combined, {"representation": gram})

    def pieces(self, batches: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """This process' share of each batch, at most `micro_batch` rows at a time."""
        for rows in batches:
            mine = self.processes.share(rows)
            if not len(mine):
                self.model.dropout_stream.next_pass()  # the same number of passes everywhere
            size = self.config.micro_batch or len(mine)
            for begin in range(0, len(mine), max(1, size)):
                yield mine[begin : begin + size]

    def batch(self, name: str, rows: np.ndarray) -> Batch:
        return self.splits[name]["train"].batch(rows)

    def losses(
        self, name: str, rows: np.ndarray, batch: Batch, embeddings: Tensor
    ) -> dict[str, Tensor]:
        """Each objective's loss on some rows of a task, from their embeddings (S, H)."""
        targets = self.splits[name]["train"].targets(rows, embeddings.device)
        return self.tasks[name].losses(self.model.heads[name], batch.split(embeddings), targets)

    def reduced(self, losses: Mapping[str, Tensor]) -> np.ndarray:
        """The losses over all processes, float64 (m,); RunError if one is not finite."""
        values = torch.stack(list(losses.values())).detach().double()
        found = self.processes.add(values).cpu().numpy()
        for name, value in zip(losses, found, strict=True):
            if not np.isfinite(value):
                raise RunError(
                    f"expected a finite loss of {name}, found {value}; "
                    "a lower --lr, --head-lr or --clip may help"
                )
        return found

    def combined(
        self, gram: np.ndarray, losses: np.ndarray, names: Mapping[str, Tensor]
    ) -> Combined:
        return self.combiner.combine(gram, losses, [self.place[name] for name in names])

    def result(
        self,
        batches: Batches,
        losses: Mapping[str, Tensor],
        found: np.ndarray,
        combined: Combined,
        grams: Mapping[str, np.ndarray],
    ) -> StepResult:
        """Add up the heads' gradients over the processes and tell what was done."""
        for name in batches:
            for parameter in self.model.heads[name].parameters():
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                self.processes.add(parameter.grad)
        examples = sum(len(rows) for several in batches.values() for rows in several)
        return StepResult(tuple(losses), found, combined, grams, examples)
