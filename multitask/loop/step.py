"""One step: batches -> embeddings -> losses -> rows -> Gram matrix -> weights -> gradient."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.errors import RunError
from multitask.combiners.base import ALONE, Combined
from multitask.combiners.nested import combine_tasks
from multitask.distributed import Processes
from multitask.loop.gradients import GradientRows, check_finite
from multitask.model import EncoderWithHeads
from multitask.passes import CleanPass, EncoderPass, Part, seed_step
from multitask.settings.config import RunConfig
from tasks.base import Task
from tasks.data import Splits

Batches = Mapping[str, Sequence[np.ndarray]]  # task -> rows of its batches in a step
Losses = dict[str, Tensor]  # by objective, scalars


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
    their task. With several processes, a loss over a batch uses the texts of all processes. `epoch`
    counts from 1; the losses of a task may depend on it. `total_steps` are those of the whole run.
    """

    def __init__(
        self,
        model: EncoderWithHeads,
        tasks: Mapping[str, Task],
        splits: Splits,
        config: RunConfig,
        processes: Processes = Processes(),
        total_steps: int = 1,
    ) -> None:
        self.model, self.tasks, self.splits = model, tasks, splits
        self.config, self.processes = config, processes
        self.regularizers = [(one, one.checked_weights(tasks)) for one in config.regularizers]
        self.epoch, self.total_steps = 1, total_steps
        words = model.encoder.embeddings.word
        words.sparse = True  # a batch uses few of them
        self.rows = GradientRows(model.sections(), words.weight, processes)
        self.objectives = [name for task in tasks.values() for name in task.objectives]
        combined = self.objectives if config.balance is None else tasks
        self.combiner = config.combiner.for_run(len(combined), config.seed)

    def __call__(self, batches: Batches, measure: bool = False, step: int = 0) -> StepResult:
        """Compute step number `step`, which seeds dropout and the noise of regularisers.

        An objective is the sum over the batches of its task in the step, of the mean over the
        examples of each: a task that the sampler drew twice counts twice (BEES, Eq. 5).

        Each objective becomes a row: its gradient on the shared parameters or, with one backward
        pass for all, on the embeddings of the step's only batch (Sener and Koltun, 2018, section
        3.3). The short cut for a plain sum keeps no rows, unless the step is to `measure` them.

        Raise RunError for losses or gradients that are not finite.
        """
        at_embeddings = self.config.on_embeddings
        needs_rows = self.combiner.needs_rows or at_embeddings or self.config.balance is not None
        apart = (measure or needs_rows) and not self.model.frozen
        rows, values = self.rows, Losses()
        for losses, passes in self.computed(batches, step, values):
            if apart:
                rows = self.keep_apart(losses, passes, list(values))
            else:
                torch.stack(list(losses.values())).sum().backward()
                for one in passes:
                    one.backward()
        names, found = tuple(values), self.reduced(values)
        check_finite("loss", found, names)
        grams: dict[str, np.ndarray] = {}
        combined = Combined(np.ones(len(names)), "summed")
        if apart:
            grams = rows.grams()
            if at_embeddings:
                self.processes.all_reduce_sum(torch.from_numpy(grams["representation"]))
            combined = self.combine(np.sum([*grams.values()], axis=0), found, names)
            rows.write_back(combined.weights)
            for one in passes if at_embeddings else ():
                one.backward()
        self.reduce_gradients(names, not self.model.frozen and (at_embeddings or not apart))
        examples = sum(len(indices) for several in batches.values() for indices in several)
        return StepResult(names, found, combined, grams, examples)

    def computed(
        self, batches: Batches, step: int, values: Losses
    ) -> Iterator[tuple[Losses, list[EncoderPass]]]:
        """Yield what `losses` returns for each part of a step, and add the losses up in `values`.

        Parts of one task follow each other.
        """
        seed_step(self.config.seed, step, self.processes.rank)
        for name, several in batches.items():
            for part in self.parts(name, several):
                losses, passes = self.losses(name, part, step)
                for key, loss in losses.items():
                    values[key] = values[key] + loss.detach() if key in values else loss.detach()
                yield losses, passes

    def parts(self, name: str, batches: Sequence[np.ndarray]) -> Iterator[Part]:
        """Split a task's batches in a step into parts, at least one a batch.

        An encoder pass has at most `micro_batch` of this process' share of a batch. Each is a part,
        unless the losses compare the examples of a batch, those of all processes, or gradients at
        the embeddings are combined. The loss of a step is the sum of the means of the batches.
        """
        whole = self.tasks[name].compares_examples
        for indices in batches:
            own = indices[self.processes.rank :: self.processes.count]
            size = self.config.micro_batch or max(1, len(own))
            pieces = [own[begin : begin + size] for begin in range(0, len(own), size)]
            if whole or self.config.on_embeddings or not pieces:
                together = indices if whole else own
                yield Part(pieces, together, len(together) / len(indices))
            else:
                for piece in pieces:
                    yield Part([piece], piece, len(piece) / len(indices))

    def losses(self, name: str, part: Part, step: int) -> tuple[Losses, list[EncoderPass]]:
        """Return a part's share of each objective's loss in the step, and the passes below them.

        The terms of regularisers are in the loss of the first objective.
        """
        task, split = self.tasks[name].in_epoch(self.epoch), self.splits[name]["train"]
        batches = [split.batch(piece) for piece in part.pieces]
        passes = [EncoderPass(self.model, batches, len(split.tokens), name)]
        texts, share = passes[0].texts, part.share
        if not len(part.indices):  # zeros that can be differentiated
            nothing = torch.stack([text.sum() for text in texts]).sum()
            return dict.fromkeys(task.objectives, nothing), passes
        if task.compares_examples:  # every process computes the loss of all
            texts = tuple(self.processes.joined(text, len(part.indices)) for text in texts)
            share /= self.processes.count
        targets = split.targets(part.indices, self.model.bi_encoder.device)
        soft = split.soft_targets(part.indices, targets.device)
        outputs = self.model.heads[name](*texts)
        values = task.compute_losses(outputs, texts, targets)
        progress, first = step / self.total_steps, task.objectives[0]
        about = task, part, self.config.seed, step, progress, targets, outputs, values[first], soft
        for regularizer, weights in self.regularizers:
            taught = soft is not None or not regularizer.learns_from_teacher
            if name in weights and taught and not self.model.trains_only_heads:
                term = regularizer.term(CleanPass(passes, *about))
                values[first] = values[first] + weights[name] * term
        return {key: loss * share for key, loss in values.items()}, passes

    def keep_apart(
        self, losses: Losses, passes: Sequence[EncoderPass], names: Sequence[str]
    ) -> GradientRows:
        """Add the gradient of each objective of a part to its own row, in the order of `names`.

        The graph is freed with the last objective.
        """
        rows, at_embeddings = self.rows, self.config.on_embeddings
        if at_embeddings:
            rows = GradientRows({"representation": [leaf for one in passes for leaf in one.texts]})
        for name, loss in losses.items():
            keep = name != names[-1]  # a part has the last objectives so far
            loss.backward(retain_graph=keep)
            for one in passes if not at_embeddings else ():
                one.backward(keep)
            rows.collect(names.index(name))
        return rows

    def combine(self, gram: np.ndarray, losses: np.ndarray, names: Sequence[str]) -> Combined:
        """Return the weights of the combiner; one objective alone has a status that says so.

        Raise RunError if the gradient of an objective is not finite, and for a loss below 0 that
        the combiner cannot use.
        """
        check_finite("gradient", np.diag(gram), names)
        method, balance = self.combiner, self.config.balance
        if balance is not None:
            found = combine_tasks(method, balance, gram, losses, names, list(self.tasks))
        else:
            if method.nonnegative and losses.min() < 0:
                shown = f"found {losses.min():.4g} of {names[int(losses.argmin())]}"
                raise RunError(f"combiner {method.name}: expected losses of zero or more, {shown}")
            found = method.combine(gram, losses, [self.objectives.index(name) for name in names])
            weights: Any = getattr(found, "weights", ())
            if np.shape(weights) != (len(names),):  # of a user's method
                line = f"combine must return Combined(weights, status) with {len(names)} weights"
                raise RunError(f"combiner {method.name}: {line}")
        alone = len(names) == 1 and not method.for_one_objective
        return replace(found, status=ALONE) if alone else found

    def after_step(self, batches: Batches, step: int, result: StepResult) -> None:
        """Show a combiner that compares losses those of a step's batches after the step.

        They are computed with the new weights and the same dropout, in one more forward pass.
        Losses that are not finite are not shown; the next step reports them.
        """
        if self.model.frozen or not self.combiner.compares_losses:
            return
        values = Losses()
        for _ in self.computed(batches, step, values):
            pass
        after = self.reduced(values)
        if np.isfinite(after).all():
            drawn = [self.objectives.index(name) for name in result.objectives]
            self.combiner.after_step(result.losses, after, drawn)

    def reduced(self, losses: Losses) -> np.ndarray:
        """Sum losses over the processes, float64 (m,)."""
        values = torch.stack(list(losses.values())).double()
        return self.processes.all_reduce_sum(values).cpu().numpy()

    def reduce_gradients(self, names: Sequence[str], of_encoder: bool) -> None:
        """Sum the gradients of heads, branches and perhaps the encoder over the processes.

        A process without a share contributes zeros. A task without one of the objectives `names`
        has no gradient, so that the optimiser leaves its head alone. The sparse gradient of the
        encoder becomes dense.
        """
        if of_encoder and self.processes.count == 1:
            self.rows.make_dense()
        elif of_encoder:
            self.rows.collect(0)
            self.rows.reduce()
            self.rows.write_back(np.ones(1))
        drawn = [name for name, task in self.tasks.items() if task.objectives[0] in names]
        kinds = self.model.heads, self.model.branches
        parts = [one[name] for name in drawn for one in kinds if name in one]
        for parameter in (parameter for part in parts for parameter in part.parameters()):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            self.processes.all_reduce_sum(parameter.grad)
