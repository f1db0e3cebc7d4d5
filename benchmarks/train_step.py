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
    bucketed_rows,
    cosine_loss,
    gradient_difference,
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
from multitask.config import RunConfig
from multitask.model import MultiTaskModel
from multitask.run import data_folder
from multitask.trainer import Trainer
from tasks import build_task
from tasks.data import load_split
from tasks.readers import Examples

BATCH, STEPS = 32, 4  # pairs of a step, steps of a repetition
PEER = "sentence-transformers trainer fp32"
OPTIONS = {"head": "cosine", "activation": "none"}  # the cosine itself, as the peers have it


def measure(args: argparse.Namespace) -> dict[str, Any]:
    device = torch.device(args.device)
    examples = build_task("sts").read(data_folder(args.data), "train")
    sides: dict[str, Callable[[], float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for precision in dict.fromkeys(["fp32", *args.precisions]):
            name = f"sentence-transformers trainer {precision}"
            sides[name] = trainer_side(examples, precision, device, folder)
        for precision in args.precisions:
            if precision == "fp32":
                two = plain_side(examples, precision, device, one_pass=False)
                sides["transformers fp32, two passes, random"] = two
            one = plain_side(examples, precision, device, one_pass=True)
            sides[f"transformers {precision}, one pass, bucketed"] = one
            sides[f"ours {precision}"] = our_side(args.data, precision, device, Path(folder))
        found = rate_table(in_turns(sides, args.repetitions), 1.0, PEER)
    for precision in args.precisions:
        found[f"ours {precision}"]["gradient_difference"] = check(examples, precision)
    linear = choose_linear()
    return {
        "unit": "pairs/s",
        "repetitions": args.repetitions,
        "data": Path(args.data).name,
        "linear": f"{linear.kernel} ({linear.reason})",
        "groups": {f"STS, {BATCH} pairs a step, fused AdamW": found},
    }


def our_side(data: str, precision: str, device: torch.device, folder: Path) -> Callable[[], float]:
    """The loop that `run.py --mode single --task sts` runs."""
    config = RunConfig(
        mode="single",
        tasks=("sts",),
        data=data,
        batch_size=BATCH,
        lr=LEARNING_RATE,
        precision=precision,
        epochs=1000,
    )
    task = build_task("sts", **OPTIONS)
    model = MultiTaskModel(BiEncoder.from_pretrained("minilm"), {"sts": task}, config.seed)
    split = load_split(task, data_folder(data), "train", model.bi_encoder.tokenizer)
    splits = {"sts": {"train": split}}
    trainer = Trainer(model.to(device), {"sts": task}, splits, config, folder)
    model.train()
    drawn = np.zeros(1, np.int64)
    return lambda: seconds_per_example(lambda: trainer.train_step(drawn)[1], STEPS, device)


def trainer_side(
    examples: Examples, precision: str, device: torch.device, folder: str
) -> Callable[[], float]:
    """The trainer of sentence-transformers; the clock runs from its first step's end."""
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


def plain_side(
    examples: Examples, precision: str, device: torch.device, one_pass: bool
) -> Callable[[], float]:
    """A hand-written loop around transformers; with one pass, also buckets of like length."""
    tokenizer, model = peers.plain_tokenizer(), peers.plain_model("fp32", device).train()
    texts = [tokenised(tokenizer, column) for column in examples.texts]
    assert examples.targets is not None
    targets = torch.from_numpy(examples.targets).to(device) / 5
    lengths = np.array([max(map(len, pair)) for pair in zip(*texts, strict=True)])
    batches = bucketed_rows(lengths, BATCH) if one_pass else random_rows(len(lengths), BATCH)

    def loss_of() -> tuple[torch.Tensor, int]:
        rows = next(batches)
        chosen = [[column[row] for row in rows] for column in texts]
        with autocast(device, precision):
            u, v = plain_embeddings(model, tokenizer, chosen, one_pass)
        return cosine_loss(targets[torch.from_numpy(rows)])(u, v), len(rows)

    step = stepper(model, loss_of)
    return lambda: seconds_per_example(step, STEPS, device)


def check(examples: Examples, precision: str) -> float:
    """Our gradient of one batch against transformers' in float32, dropout off, on the CPU."""
    tokenizer, peer = peers.plain_tokenizer(), peers.plain_model("fp32", torch.device("cpu"))
    ours = BiEncoder.from_pretrained("minilm")
    assert examples.targets is not None
    some = examples.some(BATCH)
    assert some.targets is not None
    loss = cosine_loss(torch.from_numpy(some.targets) / 5)
    chosen = [tokenised(tokenizer, column) for column in some.texts]
    loss(*plain_embeddings(peer, tokenizer, chosen, one_pass=True)).backward()
    tokens = [ours.tokenizer(column) for column in some.texts]
    batch = pack(tokens, np.arange(BATCH))
    with autocast(ours.device, precision):
        embeddings = ours.embed(batch)
    loss(*batch.split(embeddings)).backward()
    return gradient_difference(ours, peer)
