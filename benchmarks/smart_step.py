"""Examples/s of a training step with and without SMART: ours, and smart-pytorch on transformers.

SMART has one inner step. The ratio is at least 8/3: a plain step is a forward pass and a backward
pass of twice its work; the noise adds a forward and half a backward pass, the term a whole step.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.peers import WIDTH, mean_pooled, pad, plain_model, plain_tokenizer
from benchmarks.steps import bucketed_rows, own_step, seconds_per_example, stepper, tokenised
from benchmarks.timing import described, in_rounds, rate_table
from minbert.bi_encoder import autocast
from multitask.config import RunConfig
from tasks import build_task, data_folder

BATCH, STEPS = 32, 2
PEER = "smart-pytorch on transformers"


def measure(args: argparse.Namespace) -> dict[str, Any]:
    groups, has_peer = {}, find_spec("smart_pytorch") is not None
    for task in ("sst", "sts"):
        sides = {}
        for precision in args.precisions:
            for weight in (0.0, 1.0):
                name = f"ours {precision}" + (", SMART" if weight else "")
                sides[name] = our_side(task, precision, weight, args)
        peer = f"ours {args.precisions[0]}"
        if task == "sst" and has_peer:  # the peer perturbs a single text
            sides["transformers fp32"] = plain_side(False, args)
            sides[PEER] = plain_side(True, args)
        found = rate_table(in_rounds(sides, args.repetitions), 1.0, peer)
        for name, side in found.items():
            plain = "transformers fp32" if name == PEER else name.removesuffix(", SMART")
            side["times_plain"] = found[plain]["median"] / side["median"]
        groups[f"{task}, {BATCH} examples a step, fused AdamW"] = found
    if not has_peer:
        print("smart-pytorch is skipped: run pip install --no-deps smart-pytorch==0.0.4")
    return described(args, "examples/s", groups)


def our_side(
    task: str, precision: str, weight: float, args: argparse.Namespace
) -> Callable[[], float]:
    """Return our side: the toolkit's own gradient and optimiser."""
    config = RunConfig(
        mode="single",
        tasks=(task,),
        data=args.data,
        batch_size=BATCH,
        precision=precision,
        similarity_scale=1.0,  # as on the other sides
        device=args.device,
        smart_weight={task: weight} if weight else {},
    )
    return own_step(config, STEPS)


def plain_side(smart: bool, args: argparse.Namespace) -> Callable[[], float]:
    """Return a hand-written loop on SST in length buckets, with or without smart-pytorch's loss."""
    from smart_pytorch import SMARTLoss, kl_loss, sym_kl_loss

    device = torch.device(args.device)
    examples = build_task("sst").read(data_folder(args.data), "train")
    tokenizer, encoder = plain_tokenizer(), plain_model("fp32", device).train()
    head = build_task("sst").build_head(WIDTH).to(device)
    model = torch.nn.ModuleList([encoder, head])
    ids = tokenised(tokenizer, examples.texts[0])
    batches = bucketed_rows(np.array([len(one) for one in ids]), BATCH)
    targets = torch.from_numpy(np.asarray(examples.targets))

    def forward() -> tuple[torch.Tensor, int]:
        rows = next(batches)
        inputs = pad(tokenizer, [ids[row] for row in rows]).to(device)
        mask = inputs["attention_mask"]

        # smart-pytorch's example for BERT and mt-dnn perturb the output of the embedding module.
        seen = mask[:, None, None, :].bool()  # broadcast over heads and tokens

        def logits(embedded: torch.Tensor) -> torch.Tensor:
            states = encoder.encoder(embedded, attention_mask=seen).last_hidden_state
            return head(mean_pooled(states, mask))

        with autocast(device, "fp32"):
            embedded = encoder.embeddings(inputs["input_ids"])
            clean = logits(embedded)
            loss = F.cross_entropy(clean, targets[rows].to(device))
            if smart:
                loss = loss + SMARTLoss(logits, kl_loss, sym_kl_loss)(embedded, clean)
        return loss, len(rows)

    step = stepper(model, forward)
    return lambda: seconds_per_example(step, STEPS, device)
