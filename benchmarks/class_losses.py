"""Milliseconds and memory of losses over the classes of a batch, forward and backward.

Our losses are compared with pytorch-metric-learning's on random embeddings, their only input.
Triplets have a smaller batch, because the peer stores every triplet. The cost of LaCon's losses
grows linearly with the number of examples, that of losses over pairs quadratically.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.timing import in_rounds, seconds_table, synchronize, timed
from losses import (
    instance_centered_loss,
    label_centered_loss,
    label_embedding_regularizer,
    supcon_loss,
    super_loss,
    triplet_loss,
)

CLASSES, WIDTH, TEMPERATURE, MARGIN, HARD = 5, 512, 0.1, 0.2, 50
LABEL_HEADS = 4  # six heads do not divide this width
SENTENCES, TRIPLET_SENTENCES = 800, 200
GROWING = (200, 800, 3200)
Loss = Callable[[Tensor, Tensor], Tensor]  # embeddings (N, H), classes (N,)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    from pytorch_metric_learning.losses import SupConLoss, TripletMarginLoss

    def unit(loss: Loss) -> Loss:
        return lambda embeddings, classes: loss(F.normalize(embeddings, dim=-1), classes)

    peer = "pytorch-metric-learning SupCon"
    pairs: dict[str, Loss] = {
        peer: SupConLoss(temperature=TEMPERATURE),
        "ours SupCon": partial(supcon_loss, temperature=TEMPERATURE),
        "ours SuperLoss": unit(partial(super_loss, temperature=TEMPERATURE)),
        f"ours SuperLoss, {HARD} hard negatives": unit(
            partial(super_loss, temperature=TEMPERATURE, top_k=HARD)
        ),
    }
    triplets: dict[str, Loss] = {
        "pytorch-metric-learning triplets": TripletMarginLoss(margin=MARGIN),
        "ours triplets": partial(triplet_loss, margin=MARGIN),
    }
    growing: dict[str, Loss] = {"ours SupCon": pairs["ours SupCon"], "ours LaCon": LabelAnchored()}
    wanted = [(SENTENCES, pairs), (TRIPLET_SENTENCES, triplets)]
    wanted += [(count, growing) for count in GROWING]
    groups = {}
    for count, losses in wanted:
        device = torch.device(args.device)
        embeddings = torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(0))
        classes = torch.arange(count, device=device) % CLASSES
        works = {
            name: partial(step, loss, embeddings.to(device).requires_grad_(), classes)
            for name, loss in losses.items()
        }
        found = in_rounds({n: partial(timed, work) for n, work in works.items()}, args.repetitions)
        sides = seconds_table(
            {n: [1000 * value for value in several] for n, several in found.items()},
            next(iter(losses)),
        )
        for name, work in works.items():
            sides[name]["peak_mb"] = peak_megabytes(work, device)
        first = next(iter(losses))
        groups[f"{count} sentences of {CLASSES} classes, width {WIDTH}, beside {first}"] = sides
    return {"unit": "ms", "repetitions": args.repetitions, "groups": groups}


class LabelAnchored:
    """LaCon's three losses with their own label embeddings."""

    def __init__(self) -> None:
        self.labels = torch.randn(CLASSES, WIDTH, requires_grad=True)

    def __call__(self, embeddings: Tensor, classes: Tensor) -> Tensor:
        labels = self.labels.to(embeddings.device)
        return (
            instance_centered_loss(embeddings, labels, classes, TEMPERATURE, LABEL_HEADS)
            + label_centered_loss(embeddings, labels, classes, TEMPERATURE)
            + label_embedding_regularizer(labels)
        )


def step(loss: Loss, embeddings: Tensor, classes: Tensor) -> None:
    """Run one forward and one backward pass."""
    embeddings.grad = None
    loss(embeddings, classes).backward()
    synchronize(embeddings.device)


def peak_megabytes(work: Callable[[], None], device: torch.device) -> float:
    """Return the peak memory of `work` in megabytes, minus the memory before it."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return (torch.cuda.max_memory_allocated(device) - before) / 1e6
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        work()
    assert recorded.profiler is not None
    results = recorded.profiler.kineto_results
    assert results is not None
    changes = [(e.start_ns(), e.nbytes()) for e in results.events() if e.name() == "[memory]"]
    held = most = 0
    for _, change in sorted(changes, key=lambda item: item[0]):
        held += change
        most = max(most, held)
    return most / 1e6
