"""Shared parts of training-step benchmarks: losses, transformers' batches, gradient checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.peers import MAX_TOKENS, mean_pooled, pad, plain_model, plain_tokenizer
from benchmarks.timing import synchronize
from minbert.batching import bucketed_batches, pack
from minbert.bi_encoder import BiEncoder
from minbert.encoder import Encoder
from minbert.precision import autocast
from minbert.weights import name_table
from multitask.run import make_trainer
from multitask.settings.config import RunConfig

LEARNING_RATE = 2e-5
Loss = Callable[[Tensor, Tensor], Tensor]  # two (B, H) -> scalar


def cosine_loss(targets: Tensor) -> Loss:
    """Return the squared error of the cosine, as in sentence-transformers' CosineSimilarityLoss."""
    return lambda u, v: F.mse_loss(F.cosine_similarity(u, v), targets)


def info_nce(u: Tensor, v: Tensor) -> Tensor:
    """Return SimCSE's loss at its temperature of 0.05 (Gao et al., 2021, Eq. 1)."""
    cosines = F.normalize(u) @ F.normalize(v).T / 0.05
    return F.cross_entropy(cosines, torch.arange(len(u), device=u.device))


def endless(batches: Callable[[np.random.Generator], list[np.ndarray]]) -> Iterator[np.ndarray]:
    """Yield batches of rows, one pass over the data after another."""
    generator = np.random.default_rng(0)
    while True:
        yield from batches(generator)


def random_rows(count: int, size: int) -> Iterator[np.ndarray]:
    """Yield batches in random order, like a DataLoader that drops the last short batch."""
    return endless(lambda g: list(g.permutation(count)[: count - count % size].reshape(-1, size)))


def bucketed_rows(lengths: np.ndarray, size: int) -> Iterator[np.ndarray]:
    return endless(lambda g: [b for b in bucketed_batches(lengths, size, g) if len(b) == size])


def tokenised(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    return tokenizer(texts, truncation=True, max_length=MAX_TOKENS)["input_ids"]


def own_step(config: RunConfig, steps: int) -> Callable[[], float]:
    """Return a function that times the toolkit's gradient and optimiser, in seconds per example.

    Like the hand-written peers, it has no clipping, schedule or telemetry.
    """
    (task,) = config.tasks
    # The trainer writes nothing before its own first step.
    trainer = make_trainer(config, Path())
    trainer.model.train()
    gradient, optimizer = trainer.gradient, trainer.optimizer
    batches = bucketed_rows(trainer.splits[task]["train"].lengths, config.batch_size)

    def step() -> int:
        rows = next(batches)
        gradient({task: [rows]})
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return len(rows)

    return lambda: seconds_per_example(step, steps, torch.device(config.device))


def plain_embeddings(
    model: Any, tokenizer: Any, texts: list[list[list[int]]], one_pass: bool
) -> list[Tensor]:
    """Return the embeddings of each column of token ids, in one padded pass or one per column."""
    passes = [texts[0] + texts[1]] if one_pass else texts
    found = []
    for lists in passes:
        inputs = pad(tokenizer, lists).to(model.device)
        states = model(**inputs).last_hidden_state
        found.append(mean_pooled(states, inputs["attention_mask"]))
    return list(found[0].chunk(2)) if one_pass else found


def seconds_per_example(step: Callable[[], int], steps: int, device: torch.device) -> float:
    """Return the mean over `steps` calls of `step`, which returns its number of examples."""
    synchronize(device)
    begin = time.perf_counter()
    examples = sum(step() for _ in range(steps))
    synchronize(device)
    return (time.perf_counter() - begin) / examples


def stepper(model: Any, loss_of: Callable[[], tuple[Tensor, int]]) -> Callable[[], int]:
    """Return a training step with fused AdamW: forward, backward, optimiser step."""
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, fused=True)

    def step() -> int:
        loss, examples = loss_of()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return examples

    return step


def relative_difference(ours: Iterable[Tensor], theirs: Iterable[Tensor]) -> float:
    """Return the norm of the difference of two gradients over the norm of the second."""
    first, second = (torch.cat([one.flatten().double() for one in g]) for g in (ours, theirs))
    return float((first - second).norm() / second.norm())


def gradient_difference(ours: BiEncoder, peer: Any) -> float:
    """Return the relative difference of our encoder's gradient to that of transformers' model."""
    theirs = {name: p.grad for name, p in peer.named_parameters() if p.grad is not None}
    parameters = dict(ours.encoder.named_parameters())
    assert isinstance(ours.encoder, Encoder)
    table = name_table(ours.encoder.config)
    grads = [grad for name in table if (grad := parameters[name].grad) is not None]
    assert len(grads) == len(table)
    return relative_difference(grads, [theirs[one] for names in table.values() for one in names])


def plain_side(
    columns: Sequence[list[str]],
    loss_of: Callable[[np.ndarray], Loss],
    batch: int,
    steps: int,
    precision: str,
    device: torch.device,
    one_pass: bool,
) -> Callable[[], float]:
    """Return a hand-written loop with transformers; `one_pass` also means length buckets.

    `loss_of(rows)` returns the loss for the embeddings of these rows of both columns.
    """
    tokenizer, model = plain_tokenizer(), plain_model("fp32", device).train()
    texts = [tokenised(tokenizer, column) for column in columns]
    lengths = np.array([max(map(len, pair)) for pair in zip(*texts, strict=True)])
    batches = bucketed_rows(lengths, batch) if one_pass else random_rows(len(lengths), batch)

    def forward() -> tuple[Tensor, int]:
        rows = next(batches)
        chosen = [[column[row] for row in rows] for column in texts]
        # PyTorch's own, which converts a weight once for both passes; ours converts it in each.
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            u, v = plain_embeddings(model, tokenizer, chosen, one_pass)
        return loss_of(rows)(u, v), len(rows)

    step = stepper(model, forward)
    return lambda: seconds_per_example(step, steps, device)


def check_gradient(
    columns: Sequence[list[str]], loss: Loss, precision: str, one_pass: bool
) -> float:
    """Compare one batch's gradient with transformers' in float32, without dropout, on the CPU."""
    tokenizer, peer = plain_tokenizer(), plain_model("fp32", torch.device("cpu"))
    ours = BiEncoder.from_pretrained("minilm")
    lists = [tokenised(tokenizer, column) for column in columns]
    loss(*plain_embeddings(peer, tokenizer, lists, one_pass)).backward()
    batch = pack([ours.tokenizer(column) for column in columns], np.arange(len(columns[0])))
    with autocast(ours.device, precision):
        embeddings = ours.embed(batch)
    loss(*batch.split(embeddings)).backward()
    return gradient_difference(ours, peer)
