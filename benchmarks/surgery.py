"""A three-task step with PCGrad on the same encoder: ours, plain backward passes, and TorchJD.

All sides use the same batch of 16 SST sentences, 16 Quora pairs and 16 STS pairs. A step consists
of forward passes, gradients and fused AdamW.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from benchmarks.timing import in_rounds, make_result, seconds_table, timed
from benchmarks.train_step import LEARNING_RATE, relative_difference
from minbert.bi_encoder import BiEncoder
from multitask.combiners import Combined, Combiner, pcgrad_weights
from multitask.loop.step import StepGradient
from multitask.loop.step_losses import StepLosses
from multitask.model import EncoderWithHeads
from multitask.settings.config import RunConfig
from tasks import CS224N, build_task, data_folder
from tasks.base import Embeddings
from tasks.data import Split

BATCH = 16
ORDER = [[1, 2], [0, 2], [0, 1]]  # order of PCGrad's projections on all sides
OURS, PLAIN = "our PCGrad", "three plain backwards"
PEER, PEER_BY_PARTS = "TorchJD PCGrad", "TorchJD PCGrad, Gramian by parts"


class FixedOrder(Combiner):
    """PCGrad with a fixed order of projections, which the peer can use as well."""

    needs_rows = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        return Combined(pcgrad_weights(gram, ORDER), "projected")


class ThreeTasks:
    """MiniLM with the heads of three tasks, one batch of each, and the gradients of a step."""

    def __init__(self, data: str) -> None:
        self.tasks = {name: build_task(name) for name in CS224N}
        self.examples = {
            name: task.read(data_folder(data), "train").sample(BATCH)
            for name, task in self.tasks.items()
        }
        self.model = EncoderWithHeads(BiEncoder.from_pretrained("minilm"), self.tasks, seed=0)
        tokenizer, encoder = self.model.bi_encoder.tokenizer, self.model.bi_encoder.encoder
        self.splits = {
            name: {"train": Split(one, tuple(map(tokenizer, one.texts)))}
            for name, one in self.examples.items()
        }
        config = RunConfig(mode="multitask", tasks=CS224N)
        losses = StepLosses(self.model, self.tasks, self.splits, {}, config)
        self.gradient = StepGradient(losses, FixedOrder())
        encoder.embeddings.word.sparse = False  # until surgery sets it
        self.shared = list(encoder.parameters())
        self.words = encoder.embeddings.word

    def embed(self, name: str) -> Embeddings:
        return self.model.embed(self.splits[name]["train"].batch(np.arange(BATCH)))

    def loss(self, name: str, texts: Embeddings) -> Tensor:
        targets = torch.from_numpy(self.examples[name].targets)
        outputs = self.model.heads[name](*texts)
        losses = self.tasks[name].compute_losses(outputs, texts, targets)
        return torch.stack(list(losses.values())).sum()

    def backwards(self) -> None:
        """Run one plain backward pass per task and add up the gradients."""
        for name in self.tasks:
            self.loss(name, self.embed(name)).backward()

    def surgery(self) -> None:
        """Run the toolkit's PCGrad."""
        self.gradient({name: [np.arange(BATCH)] for name in self.tasks})

    def torchjd(self, optimize_gramian: bool) -> None:
        """Call TorchJD for several tasks on shared features, one row of the Jacobian at a time."""
        from torchjd.aggregation import PCGrad
        from torchjd.autojac import jac_to_grad, mtl_backward

        texts = {name: self.embed(name) for name in self.tasks}
        mtl_backward(
            [self.loss(name, several) for name, several in texts.items()],
            features=[embedding for several in texts.values() for embedding in several],
            tasks_params=[list(head.parameters()) for head in self.model.heads.values()],
            shared_params=self.shared,
            parallel_chunk_size=1,
        )
        with patch("torch.randperm", torch.arange):
            jac_to_grad(self.shared, PCGrad(), optimize_gramian_computation=optimize_gramian)


METHODS: dict[str, Callable[[ThreeTasks], None]] = {
    PLAIN: ThreeTasks.backwards,
    OURS: ThreeTasks.surgery,
    PEER: partial(ThreeTasks.torchjd, optimize_gramian=False),
    PEER_BY_PARTS: partial(ThreeTasks.torchjd, optimize_gramian=True),
}


def step_of(method: str, data: str) -> Callable[[], None]:
    """Return a method's training step."""
    parts = ThreeTasks(data)
    parts.model.train()
    optimizer = torch.optim.AdamW(parts.model.parameters(), LEARNING_RATE, fused=True)
    parts.words.sparse = method == OURS

    def step() -> None:
        METHODS[method](parts)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure seconds per step; ratios are to TorchJD's faster call."""
    steps = {name: partial(timed, step_of(name, args.data)) for name in METHODS}
    found = in_rounds(steps, args.repetitions)
    best = min((PEER, PEER_BY_PARTS), key=lambda name: statistics.median(found[name]))
    result = seconds_table(found, best)
    result[OURS]["gradient_difference"] = gradient_difference(args.data)
    return make_result(args, "seconds", {"SST 16, Quora 16 pairs, STS 16 pairs": result})


def gradient_difference(data: str) -> float:
    """Return the relative difference of our combined gradient, heads included, to TorchJD's."""
    gradients = []
    for method in (OURS, PEER):
        parts = ThreeTasks(data)
        parts.model.eval()
        parts.words.sparse = method == OURS
        METHODS[method](parts)
        gradients.append([p.grad for p in parts.model.parameters() if p.grad is not None])
    return relative_difference(*gradients)
