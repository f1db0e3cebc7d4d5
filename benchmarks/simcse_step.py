"""Sentences/s of a SimCSE step: each sentence goes through the encoder twice, dropout differs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import peers
from benchmarks.steps import (
    bucketed_rows,
    gradient_difference,
    info_nce,
    plain_embeddings,
    random_rows,
    seconds_per_example,
    stepper,
    tokenised,
)
from benchmarks.timing import in_turns, rate_table
from minbert.batching import pack
from minbert.bi_encoder import BiEncoder, autocast
from minbert.linear_choice import choose_linear
from multitask.run import data_folder
from tasks import build_task

BATCH, STEPS = 64, 2  # sentences of a step, steps of a repetition
PEER = "transformers fp32, two passes"


def measure(args: argparse.Namespace) -> dict[str, Any]:
    device = torch.device(args.device)
    examples = build_task("qqp").read(data_folder(args.data), "train")
    texts = examples.texts[0][: args.texts]
    sides: dict[str, Callable[[], float]] = {}
    for precision in dict.fromkeys(["fp32", *args.precisions]):
        sides[f"transformers {precision}, two passes"] = plain_side(texts, precision, device)
        sides[f"ours {precision}"] = our_side(texts, precision, device)
    found = rate_table(in_turns(sides, args.repetitions), 1.0, PEER)
    for name in sides:
        if name.startswith("ours"):
            found[name]["gradient_difference"] = check(texts, name.removeprefix("ours "))
    linear = choose_linear()
    return {
        "unit": "sentences/s",
        "repetitions": args.repetitions,
        "data": Path(args.data).name,
        "linear": f"{linear.kernel} ({linear.reason})",
        "groups": {f"Quora, {BATCH} sentences a step, fused AdamW": found},
    }


def our_side(texts: list[str], precision: str, device: torch.device) -> Callable[[], float]:
    """Both views in one packed pass."""
    model = BiEncoder.from_pretrained("minilm").to(device).train()
    tokens = model.tokenizer(texts)
    batches = bucketed_rows(tokens.lengths, BATCH)

    def loss_of() -> tuple[torch.Tensor, int]:
        rows = next(batches)
        batch = pack([tokens, tokens], rows)
        with autocast(device, precision):
            views = batch.split(model.embed(batch))
        return info_nce(*views), len(rows)

    step = stepper(model, loss_of)
    return lambda: seconds_per_example(step, STEPS, device)


def plain_side(texts: list[str], precision: str, device: torch.device) -> Callable[[], float]:
    """Two passes over padded random batches, as SimCSE is mostly written."""
    tokenizer, model = peers.plain_tokenizer(), peers.plain_model("fp32", device).train()
    lists = tokenised(tokenizer, texts)
    batches = random_rows(len(lists), BATCH)

    def loss_of() -> tuple[torch.Tensor, int]:
        rows = next(batches)
        chosen = [lists[row] for row in rows]
        with autocast(device, precision):
            u, v = plain_embeddings(model, tokenizer, [chosen, chosen], one_pass=False)
        return info_nce(u, v), len(rows)

    step = stepper(model, loss_of)
    return lambda: seconds_per_example(step, STEPS, device)


def check(texts: list[str], precision: str) -> float:
    """Our gradient of one batch against transformers' in float32, dropout off, on the CPU."""
    tokenizer, peer = peers.plain_tokenizer(), peers.plain_model("fp32", torch.device("cpu"))
    ours = BiEncoder.from_pretrained("minilm")
    some = texts[:BATCH]
    lists = tokenised(tokenizer, some)
    info_nce(*plain_embeddings(peer, tokenizer, [lists, lists], one_pass=False)).backward()
    tokens = ours.tokenizer(some)
    batch = pack([tokens, tokens], np.arange(len(some)))
    with autocast(ours.device, precision):
        embeddings = ours.embed(batch)
    info_nce(*batch.split(embeddings)).backward()
    return gradient_difference(ours, peer)
