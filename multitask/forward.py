"""Examples of a task -> its losses, ready to be differentiated at the embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from multitask.distributed import Processes
from multitask.micro_batches import Part
from multitask.model import EncoderWithHeads
from multitask.passes import EncoderPass, LeafLosses
from multitask.regularizers.base import Clean, Running
from tasks.base import Task
from tasks.data import Split


@dataclass(frozen=True)
class Forward:
    """What a part of a task's `train` examples goes through: encoder, head, losses, regularisers.

    Under several processes a loss over a batch sees the texts of all of them.
    """

    model: EncoderWithHeads
    tasks: Mapping[str, Task]
    splits: Mapping[str, Mapping[str, Split]]
    regularizers: Mapping[str, Running]
    processes: Processes

    def __call__(self, name: str, part: Part, step: int) -> LeafLosses:
        """Each objective's loss on a part, its share of the step's; `step` decides the noise."""
        task, split = self.tasks[name], self.splits[name]["train"]
        batches = [split.batch(piece) for piece in part.pieces]
        clean_pass = EncoderPass(self.model, batches, len(split.tokens), name)
        copies = self.processes.count if task.in_batch else 1
        texts = clean_pass.texts
        if copies > 1:  # of all processes, in the batch's own order
            back = np.argsort(self.processes.joined_order(np.arange(len(part.indices))))
            order = torch.from_numpy(back).to(texts[0].device)
            texts = tuple(self.processes.joined(text)[order] for text in texts)
        passes = [clean_pass]
        if len(part.indices):
            targets = split.targets(part.indices, self.model.bi_encoder.device)
            outputs = self.model.heads[name](*texts)
            values = task.losses(outputs, texts, targets)
            if mine := self.regularizers_of(task):
                first = task.objectives[0]
                loss = values[first]
                clean = Clean(clean_pass, task, part, step, targets, outputs, loss)
                for regularizer in mine:
                    term = regularizer(clean)
                    values[first] = values[first] + term.value
                    passes += term.passes
        else:  # nothing, but something to differentiate
            nothing = torch.stack([text.sum() for text in texts]).sum()
            values = dict.fromkeys(task.objectives, nothing)
        share = part.share / copies
        return LeafLosses({key: loss * share for key, loss in values.items()}, passes, copies)

    def regularizers_of(self, task: Task) -> list[Running]:
        """Those that act on a task; none on heads alone."""
        every = [] if self.model.frozen else self.regularizers.values()
        return [one for one in every if task.name in one.weights]
