"""The losses of a step's batches, from one encoder pass over each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from common.errors import RunError
from multitask.distributed import Processes
from multitask.model import EncoderWithHeads
from multitask.passes import EncoderPass, LeafLosses, Part, loss_fault, parts_of
from multitask.regularizers.base import CleanPass, RegularizerState
from multitask.settings.config import RunConfig
from tasks.base import Embeddings, Task
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
        regularizers: Mapping[str, RegularizerState],
        config: RunConfig,
        processes: Processes = Processes(),
    ) -> None:
        self.model, self.tasks, self.splits = model, tasks, splits
        self.regularizers, self.config, self.processes = regularizers, config, processes
        self.learning = {one.name for one in config.regularizers if one.learns_from_teacher}
        self.epoch = self.total_steps = 1

    def parts(self, name: str, batches: Sequence[np.ndarray]) -> Iterator[Part]:
        """Split a task's batches in a step into parts."""
        one_part = self.tasks[name].compares_examples or self.config.on_embeddings
        return parts_of(
            self.tasks[name], batches, self.processes, self.config.micro_batch, one_part
        )

    def forward(self, name: str, part: Part, step: int) -> LeafLosses:
        """Compute a part's share of each objective's loss in the step, with regularisers."""
        split = self.splits[name]["train"]
        batches = [split.batch(piece) for piece in part.pieces]
        clean_pass = EncoderPass(self.model, batches, len(split.tokens), name)
        copies = self.processes.count if self.tasks[name].compares_examples else 1
        texts = clean_pass.texts
        if self.tasks[name].compares_examples:
            texts = tuple(self.processes.joined(text, len(part.indices)) for text in texts)
        values, further = self.task_losses(name, texts, clean_pass, part, step)
        losses = {key: loss * (part.share / copies) for key, loss in values.items()}
        return LeafLosses(losses, [clean_pass, *further])

    def task_losses(
        self,
        name: str,
        texts: Embeddings,
        clean_pass: EncoderPass,
        part: Part,
        step: int,
    ) -> tuple[dict[str, Tensor], list[EncoderPass]]:
        """Return a task's losses on a part with these embeddings, and further passes."""
        task, split = self.tasks[name].in_epoch(self.epoch), self.splits[name]["train"]
        if not len(part.indices):  # zeros that can be differentiated
            nothing = torch.stack([text.sum() for text in texts]).sum()
            return dict.fromkeys(task.objectives, nothing), []
        targets = split.targets(part.indices, self.model.bi_encoder.device)
        soft = split.soft_targets(part.indices, targets.device)
        outputs = self.model.heads[name](*texts)
        values = checked(name, task.compute_losses(outputs, texts, targets))
        first, progress = task.objectives[0], step / self.total_steps
        clean = CleanPass(
            *(clean_pass, task, part, step, targets, outputs, values[first], soft, progress)
        )
        passes: list[EncoderPass] = []
        for regularizer in self.regularizers_of(task, soft is not None):
            term = regularizer(clean)
            values[first] = values[first] + term.value
            passes += term.passes
        return values, passes

    def regularizers_of(self, task: Task, taught: bool) -> list[RegularizerState]:
        """Return the regularisers of a task.

        There are none if only the heads are trained. Those that learn from a teacher need a task
        that is `taught`.
        """
        every = {} if self.model.trains_only_heads else self.regularizers
        return [
            one
            for name, one in every.items()
            if task.name in one.weights and (taught or name not in self.learning)
        ]


def checked(name: str, losses: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the losses of a task; raise RunError for anything but numbers to differentiate.

    An objective of the user's own may return other values.
    """
    for loss in losses.values():
        if found := loss_fault(loss):
            line = "expected a loss as a tensor of one number with a gradient"
            raise RunError(f"{name}: {line}, found {found}")
    return losses
