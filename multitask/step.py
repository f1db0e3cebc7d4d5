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
from multitask.gradients import GradientRows, whole_gram
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
        self.rows = GradientRows(model.sections(), model.make_words_sparse(), self.processes)
        names = [name for task in tasks.values() for name in task.objectives]
        self.place = {name: index for index, name in enumerate(names)}
        check_every_parameter_has_a_place(model)

    def __call__(self, batches: Batches, measure: bool = False) -> StepResult:
        """One step; `measure` keeps the objectives apart even where the combiner would not.

        Batches of the same task make one objective, the mean over all their examples: each loss
        must be a mean over its examples. Raises RunError for losses or gradients that are not
        finite.
        """
        if self.config.gradients == "representation":
            return self.through_representation(batches)
        apart = self.combiner.needs_rows or (measure and not self.model.frozen)
        parts: dict[str, Tensor] = {}
        for name, several in batches.items():
            parts |= self.task_gradients(name, several, apart)
        if not apart:
            self.rows.collect(0)
        losses = self.summed_losses(parts)
        self.rows.reduce()
        if apart:
            grams = self.rows.grams()
            combined = self.combine(whole_gram(grams), losses, list(parts))
            self.rows.write_back(combined.weights)
        else:
            grams, combined = {}, Combined(np.ones(len(losses)), "summed")
            self.rows.write_back(np.ones(1))
        self.sum_head_gradients(batches)
        return StepResult(tuple(parts), losses, combined, grams, examples_of(batches))

    def task_gradients(
        self, name: str, batches: Sequence[np.ndarray], apart: bool
    ) -> dict[str, Tensor]:
        """Differentiate one task's objectives; returns this process' part of their losses.

        Each objective's gradient goes into a row of its own if they are kept `apart`.
        """
        names = self.tasks[name].objectives
        zero = torch.zeros((), device=self.model.bi_encoder.device)
        parts = dict.fromkeys(names, zero)
        total = sum(len(indices) for indices in batches)
        begin = self.rows.used
        for indices in self.pieces(batches):
            batch = self.batch(name, indices)
            embeddings = self.model.embed(batch, self.config.precision)
            losses = self.losses(name, indices, batch, embeddings)
            share = len(indices) / total
            parts = {key: parts[key] + loss.detach() * share for key, loss in losses.items()}
            if apart and len(names) > 1:  # the graph is needed until the last objective is done
                for row, loss in enumerate(losses.values(), begin):
                    (loss * share).backward(retain_graph=row < begin + len(names) - 1)
                    self.rows.collect(row)
            else:
                (torch.stack(list(losses.values())).sum() * share).backward()
        if apart:
            # A single objective is collected once for all its pieces; a process without any piece
            # takes part with rows of zeros.
            while self.rows.used < begin + len(names):
                self.rows.collect(self.rows.used)
        return parts

    def through_representation(self, batches: Batches) -> StepResult:
        """Objectives of one batch, combined at its embeddings; one backward through the encoder.

        The rows are the gradients on the pooled embeddings (Sener and Koltun, 2018, section 3.3).
        """
        ((name, (whole,)),) = batches.items()
        names = self.tasks[name].objectives
        indices = self.processes.share(whole)
        embeddings, gradients = None, torch.zeros(len(names), 1)
        parts = dict.fromkeys(names, torch.zeros((), device=self.model.bi_encoder.device))
        if len(indices):
            share = len(indices) / len(whole)
            batch = self.batch(name, indices)
            embeddings = self.model.embed(batch, self.config.precision)
            leaf = embeddings.detach().requires_grad_()
            losses = self.losses(name, indices, batch, leaf)
            parts = {key: loss.detach() * share for key, loss in losses.items()}
            gradients = torch.stack(
                [leaf_gradient(loss * share, leaf) for loss in losses.values()]
            ).flatten(1)
        else:
            self.model.dropout_stream.next_pass()
        values = self.summed_losses(parts)
        gram = self.processes.add((gradients @ gradients.T).double()).cpu().numpy()
        combined = self.combine(gram, values, list(parts))
        if embeddings is not None:
            weights = torch.from_numpy(combined.weights).to(gradients)
            embeddings.backward((weights @ gradients).view_as(embeddings))
        self.rows.collect(0)
        self.rows.reduce()
        self.rows.write_back(np.ones(1))
        self.sum_head_gradients(batches)
        grams = {"representation": gram}
        return StepResult(names, values, combined, grams, examples_of(batches))

    def pieces(self, batches: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """This process' share of each batch, at most `micro_batch` rows at a time.

        Every process begins as many passes of dropout as the one with the most pieces.
        """
        for indices in batches:
            mine = self.processes.share(indices)
            most = -(-len(indices) // self.processes.count)
            size = self.config.micro_batch or most
            for begin in range(0, most, size):
                piece = mine[begin : begin + size]
                if len(piece):
                    yield piece
                else:
                    self.model.dropout_stream.next_pass()

    def batch(self, name: str, indices: np.ndarray) -> Batch:
        return self.splits[name]["train"].batch(indices)

    def losses(
        self, name: str, indices: np.ndarray, batch: Batch, embeddings: Tensor
    ) -> dict[str, Tensor]:
        """Each objective's loss on some examples of a task, from their embeddings (S, H)."""
        targets = self.splits[name]["train"].targets(indices, embeddings.device)
        return self.tasks[name].losses(self.model.heads[name], batch.split(embeddings), targets)

    def summed_losses(self, parts: Mapping[str, Tensor]) -> np.ndarray:
        """The losses over all processes, float64 (m,); RunError if one is not finite."""
        values = torch.stack(list(parts.values())).detach().double()
        losses = self.processes.add(values).cpu().numpy()
        check_finite("loss", losses, list(parts))
        return losses

    def combine(self, gram: np.ndarray, losses: np.ndarray, names: Sequence[str]) -> Combined:
        """Ask the combiner; RunError if an objective's gradient is not finite."""
        check_finite("gradient", np.diag(gram), names)
        return self.combiner.combine(gram, losses, [self.place[name] for name in names])

    def sum_head_gradients(self, batches: Batches) -> None:
        """Add up the gradients of the heads over the processes; one without a share has zeros."""
        for name in batches:
            for parameter in self.model.heads[name].parameters():
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                self.processes.add(parameter.grad)


def examples_of(batches: Batches) -> int:
    return sum(len(indices) for several in batches.values() for indices in several)


def leaf_gradient(loss: Tensor, leaf: Tensor) -> Tensor:
    """The gradient of a loss on `leaf`, which is left without one; heads add theirs up."""
    loss.backward(retain_graph=True)
    assert leaf.grad is not None
    gradient, leaf.grad = leaf.grad, None
    return gradient


def check_finite(what: str, values: np.ndarray, names: Sequence[str]) -> None:
    for name, value in zip(names, values, strict=True):
        if not np.isfinite(value):
            raise RunError(
                f"expected a finite {what} of {name}, found {value}; "
                "a lower --lr, --head-lr or --clip may help"
            )


def check_every_parameter_has_a_place(model: MultiTaskModel) -> None:
    """A parameter in no section and no head would be trained by nobody's rule."""
    known = {id(p) for several in model.sections().values() for p in several}
    known |= {id(p) for p in model.heads.parameters()}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and id(parameter) not in known:
            raise ValueError(f"expected {name} in a section of the encoder or in a head")
