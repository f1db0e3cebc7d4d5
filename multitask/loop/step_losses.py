"""The losses of a step's batches, from one encoder pass over each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.errors import RunError
from multitask.distributed import Processes
from multitask.model import EncoderWithHeads
from multitask.passes import CleanPass, EncoderPass, Losses, Part
from multitask.settings.config import RunConfig
from tasks.base import Task
from tasks.data import Splits


class StepLosses:
    """The losses of each task on parts of its batches, with the terms of its regularisers.

    `epoch` counts from 1; the losses of a task may depend on it. `total_steps` are those of the
    whole run.
    """

    def __init__(
        self,
        model: EncoderWithHeads,
        tasks: Mapping[str, Task],
        splits: Splits,
        config: RunConfig,
        processes: Processes = Processes(),
    ) -> None:
        self.model, self.tasks, self.splits = model, tasks, splits
        self.config, self.processes = config, processes
        self.regularizers = [(one, one.checked_weights(tasks)) for one in config.regularizers]
        self.epoch = self.total_steps = 1

    def parts(self, name: str, batches: Sequence[np.ndarray]) -> Iterator[Part]:
        """Split a task's batches in a step into parts, at least one a batch.

        An encoder pass has at most `micro_batch` of this process' share of a batch. Each is a part,
        unless the losses compare the examples of a batch, those of all processes, or gradients at
        the embeddings are combined. The loss of a step is the sum of the means of the batches.
        """
        whole = self.tasks[name].compares_examples
        for indices in batches:
            own = self.processes.share(indices)
            size = self.config.micro_batch or max(1, len(own))
            pieces = [own[begin : begin + size] for begin in range(0, len(own), size)]
            if whole or self.config.on_embeddings or not pieces:
                together = indices if whole else own
                yield Part(pieces, together, len(together) / len(indices))
            else:
                for piece in pieces:
                    yield Part([piece], piece, len(piece) / len(indices))

    def __call__(self, name: str, part: Part, step: int) -> Losses:
        """Return a part's share of each objective's loss in the step, with regularisers."""
        task, split = self.tasks[name].in_epoch(self.epoch), self.splits[name]["train"]
        batches = [split.batch(piece) for piece in part.pieces]
        passes = [EncoderPass(self.model, batches, len(split.tokens), name)]
        texts, share = passes[0].texts, part.share
        if not len(part.indices):  # zeros that can be differentiated
            nothing = torch.stack([text.sum() for text in texts]).sum()
            return Losses(dict.fromkeys(task.objectives, nothing), passes)
        if task.compares_examples:  # every process computes the loss of all
            texts = tuple(self.processes.joined(text, len(part.indices)) for text in texts)
            share /= self.processes.count
        targets = split.targets(part.indices, self.model.bi_encoder.device)
        soft = split.soft_targets(part.indices, targets.device)
        outputs = self.model.heads[name](*texts)
        values = task.compute_losses(outputs, texts, targets)
        for loss in values.values():
            check(name, loss)
        progress, first = step / self.total_steps, task.objectives[0]
        about = task, part, self.config.seed, step, progress, targets, outputs, values[first], soft
        for regularizer, weights in self.regularizers:
            taught = soft is not None or not regularizer.learns_from_teacher
            if name in weights and taught and not self.model.trains_only_heads:
                term = regularizer.term(CleanPass(passes, *about))
                check(f"regularizer {regularizer.name}", term, or_zero=True)
                values[first] = values[first] + weights[name] * term
        return Losses({key: loss * share for key, loss in values.items()}, passes)


def check(what: str, value: Any, or_zero: bool = False) -> None:
    """Raise RunError unless a value is a loss, a tensor of one number with a gradient.

    Those of a user's own methods may be others; without a gradient one would train nothing.
    """
    one, trains = isinstance(value, Tensor) and not value.ndim, torch.is_grad_enabled()
    if not (one and (value.requires_grad or not trains or (or_zero and value == 0))):
        raise RunError(f"{what}: expected a tensor of one number with a gradient, found {value!r}")
