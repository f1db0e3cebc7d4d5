"""Pairs/s of training all-MiniLM-L6-v2 on STS with the squared error of the cosine."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import peers
from benchmarks.steps import (
    LEARNING_RATE,
    Loss,
    check_gradient,
    cosine_loss,
    plain_side,
    seconds_per_example,
)
from benchmarks.timing import described, in_rounds, rate_table
from minbert.bi_encoder import BiEncoder
from multitask.config import RunConfig
from multitask.model import EncoderWithHeads
from multitask.trainer import Trainer
from tasks import build_task, data_folder
from tasks.data import load_split
from tasks.readers import Examples

BATCH, STEPS = 32, 4  # pairs per step, steps per repetition
PEER = "sentence-transformers trainer fp32"
OPTIONS = {"head": "cosine", "activation": "none"}  # the plain cosine, as in the peers


def measure(args: argparse.Namespace) -> dict[str, Any]:
    device = torch.device(args.device)
    examples = build_task("sts").read(data_folder(args.data), "train")
    assert examples.targets is not None
    targets = torch.from_numpy(examples.targets).to(device) / 5

    def plain(precision: str, one_pass: bool) -> Callable[[], float]:
        def loss_of(rows: np.ndarray) -> Loss:
            return cosine_loss(targets[torch.from_numpy(rows)])

        return plain_side(examples.texts, loss_of, BATCH, STEPS, precision, device, one_pass)

    sides: dict[str, Callable[[], float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for precision in dict.fromkeys(["fp32", *args.precisions]):
            name = f"sentence-transformers trainer {precision}"
            sides[name] = trainer_side(examples, precision, device, folder)
        for precision in args.precisions:
            if precision == "fp32":
                two = plain(precision, one_pass=False)
                sides["transformers fp32, two passes, random"] = two
            one = plain(precision, one_pass=True)
            sides[f"transformers {precision}, one pass, bucketed"] = one
            sides[f"ours {precision}"] = our_side(args.data, precision, device, Path(folder))
        found = rate_table(in_rounds(sides, args.repetitions), 1.0, PEER)
    some = examples.sample(BATCH)
    assert some.targets is not None
    loss = cosine_loss(torch.from_numpy(some.targets) / 5)
    for precision in args.precisions:
        found[f"ours {precision}"]["gradient_difference"] = check_gradient(
            some.texts, loss, precision, one_pass=True
        )
    return described(args, "pairs/s", {f"STS, {BATCH} pairs a step, fused AdamW": found})


def our_side(data: str, precision: str, device: torch.device, folder: Path) -> Callable[[], float]:
    """Return the training loop of `run.py --mode single --task sts`."""
    config = RunConfig(
        mode="single",
        tasks=("sts",),
        data=data,
        batch_size=BATCH,
        lr=LEARNING_RATE,
        precision=precision,
        similarity_scale=1.0,  # as on the other sides
        epochs=1000,
    )
    task = build_task("sts", **OPTIONS)
    encoder = BiEncoder.from_pretrained("minilm")
    model = EncoderWithHeads(encoder, {"sts": task}, config.seed, precision)
    split = load_split(task, data_folder(data), "train", model.bi_encoder.tokenizer)
    splits = {"sts": {"train": split}}
    trainer = Trainer(model.to(device), {"sts": task}, splits, config, folder)
    model.train()
    drawn = np.zeros(1, np.int64)
    return lambda: seconds_per_example(lambda: trainer.train_step(drawn).examples, STEPS, device)


def trainer_side(
    examples: Examples, precision: str, device: torch.device, folder: str
) -> Callable[[], float]:
    """Return sentence-transformers' trainer, timed from the end of its first step."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer as PeerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments, losses
    from transformers import TrainerCallback

    assert examples.targets is not None
    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *args: object, **kwargs: object) -> None:
            ends.append(time.perf_counter())

    model = peers.sentence_transformer("fp32", device)
    first, second = examples.texts
    scores = [float(target) / 5 for target in examples.targets]
    trainer = PeerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=BATCH,
            max_steps=STEPS + 1,
            learning_rate=LEARNING_RATE,
            optim="adamw_torch_fused",
            bf16=precision == "bf16",
            use_cpu=device.type == "cpu",
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict({"sentence1": first, "sentence2": second, "score": scores}),
        loss=losses.CosineSimilarityLoss(model),
        callbacks=[Clock()],
    )

    def run() -> float:
        ends.clear()
        trainer.train()
        return (ends[-1] - ends[0]) / (STEPS * BATCH)

    return run
