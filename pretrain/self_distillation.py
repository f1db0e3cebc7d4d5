"""Self-distillation: embeddings of every size follow those of the encoder before the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from minbert.device import choose_device
from multitask.assembly import start_encoder
from multitask.settings.config import RunConfig
from pretrain.pretrain_tasks import sentence_source, text_task
from pretrain.texts import Columns, Make, Texts
from tasks.base import Embeddings, Task
from tasks.readers import Limit

if TYPE_CHECKING:
    from pretrain.objectives import SelfDistillation


def self_distillation_task(objective: SelfDistillation, config: RunConfig) -> Task:
    """Return the only task of the run; each sentence is encoded once, as its own target."""
    sentences = sentence_source(objective, config)
    teacher = Teacher(config, sentences.make)
    return text_task(objective, Texts(teacher.read, sentences.origin), teacher.loss)


class Teacher:
    """Unit embeddings (n, H) of the training sentences by the encoder that a run starts from.

    They are computed when the sentences are read. A resumed run computes them again.
    """

    def __init__(self, config: RunConfig, sentences: Make) -> None:
        self.config, self.sentences = config, sentences
        self.column: list[str] = []
        self.embeddings = torch.zeros(0)

    def read(self, folder: Path, limit: Limit) -> tuple[Columns, np.ndarray]:
        """Return the sentences as the only column, and their rows of `embeddings`."""
        (column, _), _ = self.sentences(folder, limit)  # groups do not matter here
        if column != self.column:  # the notices of a run read them, too
            encoder = start_encoder(self.config)[1].to(choose_device(self.config.device))
            found = encoder.encode(column, self.config.precision, normalize=True, progress=True)
            self.column, self.embeddings = column, torch.from_numpy(found)
        return (column,), np.arange(len(column))

    def loss(self, texts: Embeddings, rows: Tensor) -> Tensor:
        """Return the mean of 1 - cosine of embeddings (B, H) and those of the teacher, a scalar.

        Of an embedding whose dimensions beyond a width are zero, this cosine is the one of the
        first dimensions, times their share of the length of the teacher's embedding.
        """
        target = self.embeddings[rows.cpu()].to(texts[0].device)
        return 1 - F.cosine_similarity(texts[0], target).mean()
