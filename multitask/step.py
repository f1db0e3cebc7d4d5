"""The gradient of one step: batch -> embed -> losses -> rows -> Gram -> combined gradient."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from multitask.combiners import Combined, Combiner
from multitask.config import RunConfig
from multitask.distributed import Processes
from multitask.gradients import GradientRows, whole_gram
from multitask.model import MultiTaskModel
from multitask.passes import EncoderPass, Losses
from multitask.regularizers import Clean, Regularizer, build_regularizers
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


@dataclass(frozen=True)
class Part:
    """Examples `rows` whose losses are computed together, their `share` of the step's.

    `pieces` are this process' examples among them, by the pass of the encoder they go through.
    """

    pieces: tuple[np.ndarray, ...]
    rows: np.ndarray
    share: float


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
        self.step = 0
        self.regularizers = build_regularizers(config, model, tasks)
        self.rows = GradientRows(model.sections(), model.make_words_sparse(), self.processes)
        names = [name for task in tasks.values() for name in task.objectives]
        self.place = {name: index for index, name in enumerate(names)}
        check_every_parameter_has_a_place(model)

    def __call__(self, batches: Batches, measure: bool = False, step: int = 0) -> StepResult:
        """Step number `step`, which decides the noise of regularisers.

        `measure` keeps the objectives apart even where the combiner would not.
        Batches of the same task make one objective, the mean over all their examples; in-batch
        losses are averaged by the batches' sizes. Raises RunError for losses or gradients that are
        not finite.
        """
        self.step = step
        if self.config.gradients == "representation" and not self.model.frozen:
            return self.through_representation(batches)
        apart = (self.combiner.needs_rows or measure) and not self.model.frozen
        values: dict[str, Tensor] = {}
        for name, several in batches.items():
            values |= self.task_gradients(name, several, apart)
        losses = self.summed_losses(values)
        grams: dict[str, np.ndarray] = {}
        combined = Combined(np.ones(len(losses)), "summed")
        if apart:
            self.rows.reduce()
            grams = self.rows.grams()
            combined = self.combine(whole_gram(grams), losses, list(values))
            self.rows.write_back(combined.weights)
        elif not self.model.frozen:
            self.write_sum()
        self.settle(batches)
        return StepResult(tuple(values), losses, combined, grams, examples_of(batches))

    def task_gradients(
        self, name: str, batches: Sequence[np.ndarray], apart: bool
    ) -> dict[str, Tensor]:
        """Differentiate one task's objectives; returns this process' part of their losses.

        Each objective's gradient goes into a row of its own if they are kept `apart`.
        """
        names = self.tasks[name].objectives
        values = dict.fromkeys(names, torch.zeros((), device=self.model.bi_encoder.device))
        begin = self.rows.used
        for part in self.parts(name, batches):
            losses = self.losses(name, part)
            values = {key: values[key] + loss.detach() for key, loss in losses.values.items()}
            if apart and len(names) > 1:  # the graph is needed until the last objective is done
                for row, loss in enumerate(losses.values.values(), begin):
                    keep = row < begin + len(names) - 1
                    losses.push(losses.leaf_gradients(loss, keep), keep)
                    self.rows.collect(row)
            else:
                losses.push(losses.leaf_gradients(torch.stack(list(losses.values.values())).sum()))
        if apart:
            # A single objective is collected once for all its pieces; a process without any piece
            # takes part with rows of zeros.
            while self.rows.used < begin + len(names):
                self.rows.collect(self.rows.used)
        return values

    def through_representation(self, batches: Batches) -> StepResult:
        """Objectives of one batch, combined at its embeddings; one backward through the encoder.

        The rows are the gradients on the pooled embeddings (Sener and Koltun, 2018, section 3.3).
        """
        ((name, (whole,)),) = batches.items()
        names = self.tasks[name].objectives
        losses = self.losses(name, self.whole(name, whole, 1.0))
        gradients = [
            losses.leaf_gradients(loss, keep=key != names[-1])
            for key, loss in losses.values.items()
        ]
        rows = torch.stack([torch.cat([leaf.flatten() for leaf in row]) for row in gradients])
        values = self.summed_losses(losses.values)
        gram = self.processes.add((rows @ rows.T).double()).cpu().numpy()
        combined = self.combine(gram, values, names)
        weights = [float(weight) for weight in combined.weights]
        losses.push(
            [
                sum(weight * leaf for weight, leaf in zip(weights, several, strict=True))
                for several in zip(*gradients, strict=True)
            ]
        )
        self.write_sum()
        self.settle(batches)
        grams = {"representation": gram}
        return StepResult(names, values, combined, grams, examples_of(batches))

    def write_sum(self) -> None:
        """Add the parameters' gradients up over the processes."""
        self.rows.collect(0)
        self.rows.reduce()
        self.rows.write_back(np.ones(1))

    def parts(self, name: str, batches: Sequence[np.ndarray]) -> Iterator[Part]:
        """The examples of a step that go through a task's losses together.

        Each piece by itself, but a whole batch where the losses compare its examples.
        """
        total = sum(len(indices) for indices in batches)
        for indices in batches:
            if self.tasks[name].in_batch:
                yield self.whole(name, indices, len(indices) / total)
            else:
                for piece in self.pieces(indices):
                    yield Part((piece,), piece, len(piece) / total)

    def whole(self, name: str, indices: np.ndarray, share: float) -> Part:
        """A batch in one part, which in a loss over it holds the other processes' examples too."""
        pieces = tuple(self.pieces(indices))
        if self.tasks[name].in_batch:
            ranks = range(self.processes.count)
            rows = np.concatenate([indices[rank :: self.processes.count] for rank in ranks])
            return Part(pieces, rows, share)
        mine = self.processes.share(indices)
        return Part(pieces, mine, share * len(mine) / len(indices))

    def pieces(self, indices: np.ndarray) -> Iterator[np.ndarray]:
        """This process' share of a batch, at most `micro_batch` rows at a time."""
        mine = self.processes.share(indices)
        size = self.config.micro_batch or max(1, len(mine))
        for begin in range(0, len(mine), size):
            yield mine[begin : begin + size]

    def losses(self, name: str, part: Part) -> Losses:
        """Each objective's loss on some examples, its share of the step's."""
        task, split, head = self.tasks[name], self.splits[name]["train"], self.model.heads[name]
        batches = [split.batch(piece) for piece in part.pieces]
        texts = len(split.tokens)
        one = EncoderPass(self.model, batches, self.config.precision, texts)
        copies = self.processes.count if task.in_batch else 1
        found = [self.processes.joined(text) for text in one.texts] if copies > 1 else one.texts
        passes = [one]
        if len(part.rows):
            targets = split.targets(part.rows, self.model.bi_encoder.device)
            outputs = head(*found)
            values = task.losses(outputs, tuple(found), targets)
            if mine := self.regularizers_of(task):
                ((batch,), (number,)) = batches, one.numbers
                first, precision = task.objectives[0], self.config.precision
                loss = values[first]
                clean = Clean(
                    model=self.model,
                    task=task,
                    batch=batch,
                    rows=part.rows,
                    share=part.share,
                    step=self.step,
                    targets=targets,
                    precision=precision,
                    number=number,
                    outputs=outputs,
                    loss=loss,
                )
                for regularizer in mine:
                    term = regularizer(clean)
                    values[first] = values[first] + term.value
                    passes += term.passes
        else:  # nothing, but something to differentiate
            values = dict.fromkeys(task.objectives, torch.stack([t.sum() for t in found]).sum())
        share = part.share / copies
        return Losses({key: loss * share for key, loss in values.items()}, passes, copies)

    def regularizers_of(self, task: Task) -> list[Regularizer]:
        """Those that act on a task; none on heads alone."""
        every = [] if self.model.frozen else self.regularizers.values()
        return [one for one in every if task.name in one.weights]

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

    def settle(self, batches: Batches) -> None:
        """What the processes have to settle when the encoder's gradient stands.

        The heads' gradients are added up; one without a share has zeros. Each process began as
        many passes of dropout as it had pieces: all go on from the largest number, for a checkpoint
        holds one.
        """
        if self.processes.count > 1:
            stream, device = self.model.dropout_stream, self.model.bi_encoder.device
            passes = torch.tensor([stream.passes], device=device)
            stream.passes = int(self.processes.maximum(passes))
        for name in batches:
            for parameter in self.model.heads[name].parameters():
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                self.processes.add(parameter.grad)


def examples_of(batches: Batches) -> int:
    return sum(len(indices) for several in batches.values() for indices in several)


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
