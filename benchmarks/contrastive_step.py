"""Examples/s of a training step with contrastive terms (SCL-MOO) or label embeddings (LaCon).

EPO needs one gradient per objective: at the embeddings three small gradients and one backward pass
through the encoder, at the parameters three backward passes.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.steps import own_step
from benchmarks.timing import described, in_rounds, rate_table
from multitask.config import RunConfig

BATCH, STEPS = 32, 4
SIDES: dict[str, dict[str, Any]] = {
    "CE": {},
    "CE + SCL": {"objective": "scl"},
    "CE + LS": {"objective": "ls"},
    "CE + EPO, at the embeddings": {"objective": "epo", "gradients": "representation"},
    "CE + EPO, at the parameters": {"objective": "epo"},
    "LaCon-vanilla": {"objective": "lacon"},
    "LaCon-fusion": {"objective": "lacon-fusion"},
}


def measure(args: argparse.Namespace) -> dict[str, Any]:
    groups = {}
    for precision in args.precisions:
        config = {"mode": "single", "tasks": ("sst",), "data": args.data, "device": args.device}
        config |= {"batch_size": BATCH, "precision": precision}
        sides = {name: own_step(RunConfig(**config, **own), STEPS) for name, own in SIDES.items()}
        found = rate_table(in_rounds(sides, args.repetitions), 1.0, "CE")
        for side in found.values():
            side["times_plain"] = found["CE"]["median"] / side["median"]
        groups[f"SST, {BATCH} examples a step, {precision}, fused AdamW"] = found
    return described(args, "examples/s", groups)
