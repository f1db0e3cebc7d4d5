"""The gradient of one step: batches -> embeddings -> losses -> rows -> Gram matrix -> gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from common.errors import NotFiniteError, RunError
from multitask.combiners import Combined, CombinerState
from multitask.combiners.base import ALONE, ComparesLosses, ObjectiveError
from multitask.gram_matrices import whole_gram
from multitask.loop.gradients import EmbeddingRows, GradientRows, check_finite
from multitask.loop.step_losses import StepLosses
from multitask.random_state import seed_step

Batches = Mapping[str, Sequence[np.ndarray]]  # task -> rows of its batches in a step


@dataclass(frozen=True)
class StepResult:
    """The result of a step: m objectives, their losses (m,), weights, and Gram matrices (m, m).

    `grams` has one matrix for each section of the model, or one for the `representation`. It is
    empty if the gradients were added up without keeping them apart.
    """

    objectives: tuple[str, ...]
    losses: np.ndarray
    combined: Combined
    grams: Mapping[str, np.ndarray]
    examples: int


class StepGradient:
    """The computation of a step's combined gradient, which it stores in the parameters.

    The combiner's weights apply to the shared encoder; heads and branches follow only the losses of
    their task, unless the combiner's setting `weigh_heads` says otherwise. With several processes,
    a loss over a batch uses the texts of all processes.
    """

    def __init__(self, losses: StepLosses, combiner: CombinerState) -> None:
        self.losses, self.combiner = losses, combiner
        self.model, self.tasks = losses.model, losses.tasks
        self.config, self.processes = losses.config, losses.processes
        sections, words = self.model.sections(), self.model.make_words_sparse()
        self.rows = GradientRows(sections, words, self.processes)
        names = [name for task in self.tasks.values() for name in task.objectives]
        self.objective_index = {name: index for index, name in enumerate(names)}
        self.model.check_sections()

    def __call__(self, batches: Batches, measure: bool = False, step: int = 0) -> StepResult:
        """Compute step number `step`, which seeds the noise of regularisers.

        An objective is the sum over the batches of its task in the step, of the mean over the
        examples of each: a task that the sampler drew twice counts twice (BEES, Eq. 5). With
        `measure` the objectives are kept apart even if the combiner does not need it. Raise
        NotFiniteError for losses or gradients that are not finite; the next step can then be
        computed as usual.
        """
        self.seed(step)
        apart = measure or self.combiner.needs_rows or self.config.on_embeddings
        compute = self.combined if apart and not self.model.frozen else self.summed
        try:
            result = compute(batches, step)
        except NotFiniteError:  # raised in all processes
            self.rows.forget()
            raise
        self.reduce_task_gradients(result)
        return result

    def combined(self, batches: Batches, step: int) -> StepResult:
        """Keep the gradient of each objective as a row; combine the rows.

        The graph of a task is freed with its last objective.
        """
        values = self.zeros(batches)
        rows = EmbeddingRows(self.processes) if self.config.on_embeddings else self.rows
        for name, several in batches.items():
            with rows.of_objectives(len(self.tasks[name].objectives)):
                for part in self.losses.parts(name, several):
                    losses = self.losses.forward(name, part, step)
                    rows.add(losses)
                    add_values(values, losses.by_objective)
        found = self.reduced(values)
        grams = rows.grams()
        combined = self.combine(whole_gram(grams), found, list(values))
        rows.write_back(combined.weights)
        if self.config.on_embeddings:
            self.reduce_encoder_gradients()
        return StepResult(tuple(values), found, combined, grams, examples_of(batches))

    def summed(self, batches: Batches, step: int) -> StepResult:
        """The short cut for a plain sum: differentiate all objectives of a batch at once.

        With a frozen encoder only heads and branches are differentiated.
        """
        values = self.zeros(batches)
        for name, several in batches.items():
            for part in self.losses.parts(name, several):
                losses = self.losses.forward(name, part, step)
                losses.backward(torch.stack(list(losses.by_objective.values())).sum())
                add_values(values, losses.by_objective)
        found = self.reduced(values)
        if not self.model.frozen:
            self.reduce_encoder_gradients()
        combined = Combined(np.ones(len(found)), "summed")
        return StepResult(tuple(values), found, combined, {}, examples_of(batches))

    def zeros(self, batches: Batches) -> dict[str, Tensor]:
        """Return 0 for each objective of a step, in order."""
        zero = torch.zeros((), device=self.model.bi_encoder.device)
        return {key: zero for name in batches for key in self.tasks[name].objectives}

    def reduce_encoder_gradients(self) -> None:
        """Sum the encoder's gradients over the processes; make the sparse one dense."""
        if self.processes.count == 1:
            self.rows.make_dense()
            return
        self.rows.collect(0)
        self.rows.reduce()
        self.rows.write_back(np.ones(1))

    def reduced(self, parts: Mapping[str, Tensor], check: bool = True) -> np.ndarray:
        """Sum losses over the processes, float64 (m,); raise NotFiniteError if not finite."""
        values = torch.stack(list(parts.values())).detach().double()
        losses = self.processes.all_reduce_sum(values).cpu().numpy()
        if check:
            check_finite("loss", losses, list(parts))
        return losses

    def combine(self, gram: np.ndarray, losses: np.ndarray, names: Sequence[str]) -> Combined:
        """Call the combiner; raise NotFiniteError if an objective's gradient is not finite."""
        check_finite("gradient", np.diag(gram), names)
        drawn = [self.objective_index[name] for name in names]
        combine = self.combiner.combine
        return self.checked(lambda: combine(gram, losses, drawn), len(drawn))

    def checked(self, combine: Callable[[], Combined], m: int) -> Combined:
        """Return the weights of the combiner for m objectives, which may be a user's.

        A step with one objective has a status that says so. Raise RunError for anything but m
        finite weights; an ObjectiveError gets the objective's name.
        """
        names, own = list(self.objective_index), self.config.combiner
        try:
            found = combine()
        except ObjectiveError as error:
            raise error.of(names[error.index]) from error
        weights = getattr(found, "weights", None)
        ones = self.combiner.needs_rows or np.all(weights == 1)
        if not isinstance(found, Combined) or not ones or found.weights.shape != (m,):
            line = f"expected a Combined of {m} weights, all 1 without needs_rows, found {found}"
            raise RunError(f"combiner {own.name}: {line}")
        if not np.isfinite(found.weights).all():
            raise RunError(f"combiner {own.name}: expected finite weights, found {found}")
        alone = m == 1 and not own.for_one_objective
        return replace(found, status=ALONE) if alone else found

    def after_step(self, batches: Batches, step: int, result: StepResult) -> None:
        """Show a combiner that compares losses those of a step's batches after the step.

        Losses that are not finite are not shown; the next step reports them.
        """
        if self.model.frozen or not isinstance(self.combiner, ComparesLosses):
            return
        values = self.zeros(batches)
        device = self.model.bi_encoder.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            self.seed(step)
            for name, several in batches.items():
                for part in self.losses.parts(name, several):
                    add_values(values, self.losses.forward(name, part, step).by_objective)
        after = self.reduced(values, check=False)
        if np.isfinite(after).all():
            drawn = [self.objective_index[name] for name in result.objectives]
            self.combiner.after_step(result.losses, after, drawn)

    def seed(self, step: int) -> None:
        """Seed the random generator, from which dropout is drawn, for a step."""
        seed_step(self.config.seed, step, self.processes.rank)

    def reduce_task_gradients(self, result: StepResult) -> None:
        """Sum the gradients of heads and branches over the processes.

        A process without a share contributes zeros. A task without a loss in the step has no
        gradient, so that the optimiser leaves its head alone. With `weigh_heads`, the gradients
        have the weight of the task's first objective, which is that of its head.
        """
        weights = dict(zip(result.objectives, result.combined.weights.tolist(), strict=True))
        for name, task in self.tasks.items():
            if set(task.objectives).isdisjoint(result.objectives):
                continue
            for parameter in self.model.task_parameters(name):
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                self.processes.all_reduce_sum(parameter.grad)
                if self.config.combiner.weigh_heads:
                    parameter.grad.mul_(weights[task.objectives[0]])


def add_values(values: dict[str, Tensor], losses: Mapping[str, Tensor]) -> None:
    """Add a part's losses to those of the step."""
    for name, loss in losses.items():
        values[name] = values[name] + loss.detach()


def examples_of(batches: Batches) -> int:
    return sum(len(indices) for several in batches.values() for indices in several)
