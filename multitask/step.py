"""The gradient of one step: batch -> embed -> losses -> rows -> Gram -> combined gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from multitask.combiners import Combined, Running
from multitask.combiners.base import ObjectiveError
from multitask.config import RunConfig
from multitask.distributed import Processes
from multitask.errors import NotFiniteError, RunError
from multitask.forward import Forward
from multitask.gradients import GradientRows, whole_gram
from multitask.micro_batches import Part, parts_of, whole_part
from multitask.model import EncoderWithHeads
from multitask.passes import LeafLosses
from multitask.regularizers.base import Running as RunningTerm
from multitask.step_result import Batches, StepResult, check_finite, examples_of
from tasks.base import Task
from tasks.data import Split


class StepGradient:
    """Computes the combined gradient of a step's batches and leaves it in the parameters.

    The combiner's weights act on the shared encoder; every head follows its own losses alone.
    """

    def __init__(
        self,
        model: EncoderWithHeads,
        tasks: Mapping[str, Task],
        splits: Mapping[str, Mapping[str, Split]],
        combiner: Running,
        regularizers: Mapping[str, RunningTerm],
        config: RunConfig,
        processes: Processes = Processes(),
    ) -> None:
        self.model, self.tasks, self.combiner = model, tasks, combiner
        self.config, self.processes = config, processes
        self.forward = Forward(model, tasks, splits, regularizers, processes)
        self.rows = GradientRows(model.sections(), model.make_words_sparse(), self.processes)
        names = [name for task in tasks.values() for name in task.objectives]
        self.place = {name: index for index, name in enumerate(names)}
        check_every_parameter_has_a_place(model)

    def __call__(self, batches: Batches, measure: bool = False, step: int = 0) -> StepResult:
        """Step number `step`, which decides the noise of regularisers.

        `measure` keeps the objectives apart even where the combiner would not.
        Batches of the same task make one objective, the mean over all their examples; in-batch
        losses are averaged by the batches' sizes. Raises NotFiniteError for losses or gradients
        that are not finite; then the next step begins as after any other.
        """
        try:
            result = self.method_of(measure)(batches, step)
        except NotFiniteError:  # all processes found it
            self.rows.forget()
            self.sync_dropout()
            raise
        self.sync_dropout()
        self.add_heads_up(batches)
        return result

    def method_of(self, measure: bool) -> Callable[[Batches, int], StepResult]:
        """How this step's gradient is computed."""
        if self.model.frozen:
            return self.added_up
        if self.config.gradients == "representation":
            return self.combined_at_representation
        if self.combiner.needs_rows or measure:
            return self.combined_at_parameters
        return self.added_up

    def begin_epoch(self, epoch: int) -> None:
        """Take the losses that tasks have in this epoch, from 1."""
        tasks = {name: task.in_epoch(epoch) for name, task in self.tasks.items()}
        self.forward = replace(self.forward, tasks=tasks)

    def added_up(self, batches: Batches, step: int) -> StepResult:
        """All objectives' gradients at once; only those of heads if the encoder is frozen."""
        values = self.no_losses(batches)
        for name, several in batches.items():
            for part in self.parts(name, several):
                losses = self.forward(name, part, step)
                losses.backward(
                    losses.leaf_gradients(torch.stack(list(losses.by_objective.values())).sum())
                )
                add_values(values, losses)
        summed = self.summed_losses(values)
        if not self.model.frozen:
            self.add_encoder_up()
        combined = Combined(np.ones(len(summed)), "summed")
        return StepResult(tuple(values), summed, combined, {}, examples_of(batches))

    def combined_at_parameters(self, batches: Batches, step: int) -> StepResult:
        """A row for each objective's gradient on the shared parameters, as the combiner weighs it.

        A task's graph is freed with its last objective.
        """
        values = self.no_losses(batches)
        for name, several in batches.items():
            begin, count = self.rows.used, len(self.tasks[name].objectives)
            for part in self.parts(name, several):
                losses = self.forward(name, part, step)
                for row, (gradients, keep) in enumerate(losses.each(), begin):
                    losses.backward(gradients, keep)
                    if count > 1:
                        self.rows.collect(row)
                add_values(values, losses)
            # A single objective is collected once for all its pieces; a process without any piece
            # takes part with rows of zeros.
            while self.rows.used < begin + count:
                self.rows.collect(self.rows.used)
        summed = self.summed_losses(values)
        self.rows.reduce()
        grams = self.rows.grams()
        combined = self.combine(whole_gram(grams), summed, list(values))
        self.rows.write_back(combined.weights)
        return StepResult(tuple(values), summed, combined, grams, examples_of(batches))

    def combined_at_representation(self, batches: Batches, step: int) -> StepResult:
        """Objectives of one batch, combined at its embeddings; one backward through the encoder.

        The rows are the gradients on the pooled embeddings (Sener and Koltun, 2018, section 3.3),
        those of the regularisers' further passes among them.
        """
        ((name, (whole,)),) = batches.items()
        part = whole_part(self.tasks[name], whole, self.processes, self.config.micro_batch)
        losses = self.forward(name, part, step)
        gradients = [found for found, _ in losses.each()]
        rows = torch.stack([torch.cat([leaf.flatten() for leaf in row]) for row in gradients])
        summed = self.summed_losses(losses.by_objective)
        gram = self.processes.all_reduce_sum((rows @ rows.T).double()).cpu().numpy()
        names = tuple(losses.by_objective)
        combined = self.combine(gram, summed, names)
        losses.backward(weighted(combined.weights, gradients))
        self.add_encoder_up()
        grams = {"representation": gram}
        return StepResult(names, summed, combined, grams, examples_of(batches))

    def parts(self, name: str, batches: Sequence[np.ndarray]) -> Iterator[Part]:
        return parts_of(self.tasks[name], batches, self.processes, self.config.micro_batch)

    def no_losses(self, batches: Batches) -> dict[str, Tensor]:
        """0 for each objective of a step, in their order."""
        zero = torch.zeros((), device=self.model.bi_encoder.device)
        return {key: zero for name in batches for key in self.tasks[name].objectives}

    def add_encoder_up(self) -> None:
        """Add the parameters' gradients up over the processes."""
        self.rows.collect(0)
        self.rows.reduce()
        self.rows.write_back(np.ones(1))

    def summed_losses(self, parts: Mapping[str, Tensor]) -> np.ndarray:
        """The losses over all processes, float64 (m,); NotFiniteError if one is not finite."""
        values = torch.stack(list(parts.values())).detach().double()
        losses = self.processes.all_reduce_sum(values).cpu().numpy()
        check_finite("loss", losses, list(parts))
        return losses

    def combine(self, gram: np.ndarray, losses: np.ndarray, names: Sequence[str]) -> Combined:
        """Ask the combiner; NotFiniteError if an objective's gradient is not finite."""
        check_finite("gradient", np.diag(gram), names)
        try:
            found = self.combiner.combine(gram, losses, [self.place[name] for name in names])
        except ObjectiveError as error:
            name = next(one for one, place in self.place.items() if place == error.place)
            raise error.of(name) from error
        if not isinstance(found, Combined):
            raise RunError(
                f"combiner: expected a Combined of weights, found {type(found).__name__}"
            )
        if found.weights.shape != (len(names),) or not np.isfinite(found.weights).all():
            raise RunError(
                f"combiner: expected {len(names)} finite weights, found {found.weights.tolist()}"
            )
        return found

    def sync_dropout(self) -> None:
        """All processes go on from the largest number of passes of dropout.

        Each began as many as it had pieces, and a checkpoint holds one number.
        """
        if self.processes.count > 1:
            stream, device = self.model.dropout_stream, self.model.bi_encoder.device
            passes = torch.tensor([stream.passes], device=device)
            stream.passes = int(self.processes.all_reduce_max(passes))

    def add_heads_up(self, batches: Batches) -> None:
        """Add the heads' gradients up over the processes; one without a share has zeros."""
        for name in batches:
            for parameter in self.model.heads[name].parameters():
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                self.processes.all_reduce_sum(parameter.grad)


def add_values(values: dict[str, Tensor], losses: LeafLosses) -> None:
    """Add a part's losses to those of the step."""
    for name, loss in losses.by_objective.items():
        values[name] = values[name] + loss.detach()


def weighted(weights: np.ndarray, gradients: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """The sum of the objectives' gradients on each leaf, by the objectives' weights (m,)."""
    return [
        torch.stack(
            [float(weight) * leaf for weight, leaf in zip(weights, several, strict=True)]
        ).sum(0)
        for several in zip(*gradients, strict=True)
    ]


def check_every_parameter_has_a_place(model: EncoderWithHeads) -> None:
    """A parameter in no section and no head would be trained by nobody's rule."""
    known = {id(p) for several in model.sections().values() for p in several}
    known |= {id(p) for p in model.heads.parameters()}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and id(parameter) not in known:
            raise ValueError(f"expected {name} in a section of the encoder or in a head")
