"""Sentences/s of a SimCSE step: two encodings per sentence, with different dropout masks."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.steps import (
    bucketed_rows,
    check_gradient,
    info_nce,
    plain_side,
    seconds_per_example,
    stepper,
)
from benchmarks.timing import described, in_rounds, rate_table
from minbert.batching import pack
from minbert.bi_encoder import BiEncoder, autocast
from tasks import build_task, data_folder

BATCH, STEPS = 64, 2  # sentences per step, steps per repetition
PEER = "transformers fp32, two passes"


def measure(args: argparse.Namespace) -> dict[str, Any]:
    device = torch.device(args.device)
    examples = build_task("qqp").read(data_folder(args.data), "train")
    texts = examples.texts[0][: args.texts]
    sides: dict[str, Callable[[], float]] = {}
    for precision in dict.fromkeys(["fp32", *args.precisions]):
        sides[f"transformers {precision}, two passes"] = plain_side(
            [texts, texts], lambda rows: info_nce, BATCH, STEPS, precision, device, one_pass=False
        )
        sides[f"ours {precision}"] = our_side(texts, precision, device)
    found = rate_table(in_rounds(sides, args.repetitions), 1.0, PEER)
    for name in sides:
        if name.startswith("ours"):
            found[name]["gradient_difference"] = check_gradient(
                [texts[:BATCH]] * 2, info_nce, name.removeprefix("ours "), one_pass=False
            )
    groups = {f"Quora, {BATCH} sentences a step, fused AdamW": found}
    return described(args, "sentences/s", groups)


def our_side(texts: list[str], precision: str, device: torch.device) -> Callable[[], float]:
    """Return our side, which encodes both views in one packed pass."""
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
