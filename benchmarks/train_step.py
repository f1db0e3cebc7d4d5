"""A training step on STS with the squared error of the cosine, beside other libraries."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks import peers
from benchmarks.timing import in_rounds, make_result, rate_table, synchronize
from minbert.batching import bucketed_batches, pack
from minbert.bi_encoder import BiEncoder
from minbert.encoder import Encoder
from minbert.precision import autocast
from minbert.weights import name_table
from multitask.run import make_trainer
from multitask.settings.config import RunConfig
from tasks import build_task, data_folder
from tasks.readers import Examples

LEARNING_RATE = 2e-5
BATCH = 32  # pairs per step
STEPS = 4  # per repetition
PEER = "sentence-transformers trainer fp32"


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure pairs/s, and the difference of our gradient from transformers'."""
    device = torch.device(args.device)
    examples = build_task("sts").read(data_folder(args.data), "train")
    sides: dict[str, Callable[[], float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for precision in dict.fromkeys(["fp32", *args.precisions]):
            name = f"sentence-transformers trainer {precision}"
            sides[name] = trainer_side(examples, precision, device, folder)
        for precision in args.precisions:
            name = f"transformers {precision}, one pass, bucketed"
            sides[name] = plain_side(examples, precision, device)
            sides[f"ours {precision}"] = training_loop(args, precision, Path(folder))
        found = rate_table(in_rounds(sides, args.repetitions), 1.0, PEER)
    for precision in args.precisions:
        difference = check_gradient(examples.sample(BATCH), precision)
        found[f"ours {precision}"]["gradient_difference"] = difference
    return make_result(args, "pairs/s", {f"STS, {BATCH} pairs per step, fused AdamW": found})


def training_loop(args: argparse.Namespace, precision: str, folder: Path) -> Callable[[], float]:
    """Return the training loop of `run.py --mode single --task sts`, with the peers' loss."""
    config = RunConfig(
        mode="single",
        tasks=("sts",),
        data=args.data,
        device=args.device,
        batch_size=BATCH,
        similarity_scale=1.0,
        task_options={"sts": {"head": "cosine", "activation": "none"}},
        optimizer={"lr": LEARNING_RATE},
        precision=precision,
        epochs=1000,
    )
    trainer, drawn = make_trainer(config, folder), np.zeros(1, np.int64)
    trainer.model.train()
    device = torch.device(args.device)
    return lambda: seconds_per_pair(lambda: trainer.train_step(drawn).examples, device)


def trainer_side(
    examples: Examples, precision: str, device: torch.device, folder: str
) -> Callable[[], float]:
    """Return sentence-transformers' trainer, timed from the end of its first step."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer as PeerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments, losses
    from transformers import TrainerCallback

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *args: object, **kwargs: object) -> None:
            ends.append(time.perf_counter())

    model = peers.sentence_transformer("fp32", device)
    first, second = examples.texts
    scores = scaled(examples).tolist()
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


def plain_side(examples: Examples, precision: str, device: torch.device) -> Callable[[], float]:
    """Return a hand-written loop with transformers: length buckets, both texts in one pass."""
    tokenizer, model = peers.plain_tokenizer(), peers.plain_model("fp32", device).train()
    texts = [peers.tokenised(tokenizer, column) for column in examples.texts]
    batches = bucketed_rows(np.array([max(map(len, pair)) for pair in zip(*texts, strict=True)]))
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, fused=True)
    targets = scaled(examples).to(device)

    def step() -> int:
        rows = next(batches)
        chosen = [[column[row] for row in rows] for column in texts]
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            u, v = plain_embeddings(model, tokenizer, chosen).chunk(2)
        cosine_loss(u, v, targets[torch.from_numpy(rows)]).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return len(rows)

    return lambda: seconds_per_pair(step, device)


def scaled(examples: Examples) -> Tensor:
    """Return the similarities from 0 to 1: (n,)."""
    assert examples.targets is not None
    return torch.from_numpy(examples.targets) / 5


def cosine_loss(u: Tensor, v: Tensor, targets: Tensor) -> Tensor:
    """Return the squared error of the cosine, as in sentence-transformers' CosineSimilarityLoss."""
    return F.mse_loss(F.cosine_similarity(u, v), targets)


def plain_embeddings(model: Any, tokenizer: Any, texts: list[list[list[int]]]) -> Tensor:
    """Return the embeddings of all columns, one below the other, from one padded pass."""
    inputs = peers.pad(tokenizer, [ids for column in texts for ids in column]).to(model.device)
    return peers.mean_pooled(model(**inputs).last_hidden_state, inputs["attention_mask"])


def bucketed_rows(lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Yield full batches of rows of similar lengths, one pass over the data after another."""
    generator = np.random.default_rng(0)
    while True:
        batches = bucketed_batches(lengths, BATCH, generator)
        yield from (rows for rows in batches if len(rows) == BATCH)


def seconds_per_pair(step: Callable[[], int], device: torch.device) -> float:
    """Return the mean over `STEPS` calls of `step`, which returns its number of pairs."""
    synchronize(device)
    begin = time.perf_counter()
    pairs = sum(step() for _ in range(STEPS))
    synchronize(device)
    return (time.perf_counter() - begin) / pairs


def check_gradient(examples: Examples, precision: str) -> float:
    """Compare one batch's gradient with transformers' in float32, without dropout, on the CPU."""
    tokenizer, peer = peers.plain_tokenizer(), peers.plain_model("fp32", torch.device("cpu"))
    ours, targets = BiEncoder.from_pretrained("minilm"), scaled(examples)
    lists = [peers.tokenised(tokenizer, column) for column in examples.texts]
    u, v = plain_embeddings(peer, tokenizer, lists).chunk(2)
    cosine_loss(u, v, targets).backward()
    batch = pack([ours.tokenizer(column) for column in examples.texts], np.arange(len(targets)))
    with autocast(ours.device, precision):
        embeddings = ours.embed(batch)
    u, v = batch.split(embeddings)
    cosine_loss(u, v, targets).backward()
    theirs = {name: p.grad for name, p in peer.named_parameters() if p.grad is not None}
    parameters = dict(ours.encoder.named_parameters())
    assert isinstance(ours.encoder, Encoder)
    table = name_table(ours.encoder.config)
    grads = [grad for name in table if (grad := parameters[name].grad) is not None]
    assert len(grads) == len(table)
    return relative_difference(grads, [theirs[one] for names in table.values() for one in names])


def relative_difference(ours: Iterable[Tensor], theirs: Iterable[Tensor]) -> float:
    """Return the norm of the difference of two gradients over the norm of the second."""
    first, second = (torch.cat([one.flatten().double() for one in g]) for g in (ours, theirs))
    return float((first - second).norm() / second.norm())
