"""Training steps beside other libraries: one on STS, and one of three tasks with PCGrad."""

import argparse
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import sentence_transformers as st
import torch
import torch.nn.functional as F
from datasets import Dataset
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
from torch import Tensor, nn
from torchjd import aggregation, autojac
from transformers import TrainerCallback

from benchmarks.encode import FOLDER, mean_pooled, transformers_model
from benchmarks.timing import CPU, Figures, figures, in_rounds, timed
from minbert.batching import bucketed_batches, pack
from minbert.bi_encoder import BiEncoder
from minbert.precision import autocast
from minbert.weights import name_table
from multitask.loop.trainer import Trainer
from multitask.settings.config import RunConfig
from tasks import CS224N, build_task, data_folder
from tasks.readers import Examples

LEARNING_RATE = 2e-5
BATCH = 32  # pairs per step on STS
STEPS = 4  # per repetition
OURS, PEER, PEER_BY_PARTS = "our PCGrad", "TorchJD PCGrad", "TorchJD PCGrad, Gramian by parts"


def train_step(args: argparse.Namespace) -> dict[str, Figures]:
    """Measure pairs/s, and the difference of our gradient from transformers'."""
    device = torch.device(args.device)
    examples = build_task("sts").read(data_folder(args.data), "train")
    sides: dict[str, Callable[[], float]] = {}
    with TemporaryDirectory() as folder:
        for precision in dict.fromkeys(["fp32", *args.precisions]):
            side = trainer_side(examples, device, precision, folder)
            sides[f"sentence-transformers trainer {precision}"] = side
        for precision in args.precisions:
            step = transformers_step(examples, device, precision)
            sides[f"transformers {precision}, bucketed"] = partial(seconds_per_pair, step, device)
            step = our_step(args, precision, Path(folder))
            sides[f"ours {precision}"] = partial(seconds_per_pair, step, device)
        found = figures(in_rounds(sides, args.repetitions), "sentence-transformers trainer fp32", 1)
    for precision in args.precisions:
        difference = gradient_difference(examples.sample(BATCH), precision)
        found[f"ours {precision}"]["gradient off by"] = difference
    return {f"STS, {BATCH} pairs per step, fused AdamW": found}


def seconds_per_pair(step: Callable[[], int], device: torch.device) -> float:
    """Return the mean over `STEPS` calls of `step`, which returns its number of pairs."""
    pairs: list[int] = []
    return timed(lambda: pairs.extend(step() for _ in range(STEPS)), device) / sum(pairs)


def our_step(args: argparse.Namespace, precision: str, folder: Path) -> Callable[[], int]:
    """Return a step of `run.py --mode single --task sts`, with the peers' loss."""
    loss: dict[str, Any] = {"tasks": {"sts": {"head": "cosine", "activation": "none"}}}
    where = {"data": args.data, "device": args.device, "precision": precision}
    loss |= {"batch_size": BATCH, "epochs": 1000, "optimizer": {"lr": LEARNING_RATE}}
    config = RunConfig(mode="single", similarity_scale=1.0, **loss, **where)
    trainer = Trainer(config, folder)
    trainer.model.train()
    return lambda: trainer.train_step(np.zeros(1, np.int64)).examples


def trainer_side(examples: Examples, device: torch.device, precision: str, folder: str) -> Any:
    """Return sentence-transformers' trainer, timed from the end of its first step."""
    ends: list[float] = []
    clock = TrainerCallback()
    clock.on_step_end = lambda *args, **kwargs: ends.append(time.perf_counter())
    scores = (torch.as_tensor(examples.targets) / 5).tolist()
    columns = {"first": examples.texts[0], "second": examples.texts[1], "score": scores}
    options: dict[str, Any] = {"per_device_train_batch_size": BATCH, "max_steps": STEPS + 1}
    options |= {"optim": "adamw_torch_fused", "learning_rate": LEARNING_RATE, "save_strategy": "no"}
    options |= {"bf16": precision == "bf16", "use_cpu": device.type == "cpu", "disable_tqdm": True}
    arguments = st.SentenceTransformerTrainingArguments(folder, **options)
    model = st.SentenceTransformer(FOLDER, device=str(device))
    loss, rows = CosineSimilarityLoss(model), Dataset.from_dict(columns)
    trainer = st.SentenceTransformerTrainer(model, arguments, rows, loss=loss, callbacks=[clock])

    def run() -> float:
        ends.clear()
        trainer.train()
        return (ends[-1] - ends[0]) / (STEPS * BATCH)

    return run


def transformers_step(examples: Examples, device: torch.device, precision: str) -> Any:
    """Return a hand-written step with transformers: length buckets, both texts in one pass."""
    tokenizer, model = transformers_model("fp32", device)
    ids = [tokenizer(column, truncation=True)["input_ids"] for column in examples.texts]
    lengths = np.array([max(map(len, pair)) for pair in zip(*ids, strict=True)])
    generator = np.random.default_rng(0)
    epochs = (bucketed_batches(lengths, BATCH, generator) for _ in count())
    batches = (rows for rows in chain.from_iterable(epochs) if len(rows) == BATCH)
    optimizer = torch.optim.AdamW(model.train().parameters(), LEARNING_RATE, fused=True)
    targets = torch.as_tensor(examples.targets).to(device) / 5

    def step() -> int:
        rows = next(batches)
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            texts = mean_pooled(tokenizer, model, [column[row] for column in ids for row in rows])
        similarities = F.cosine_similarity(*texts.chunk(2))
        loss = F.mse_loss(similarities, targets[torch.from_numpy(rows)])
        update(optimizer, loss.backward)
        return BATCH

    return step


def gradient_difference(examples: Examples, precision: str) -> float:
    """Compare one batch's gradient with transformers' in float32, without dropout, on the CPU."""
    texts, targets = examples.texts, torch.as_tensor(examples.targets) / 5
    tokenizer, peer = transformers_model("fp32", CPU)
    ids = tokenizer([*texts[0], *texts[1]], truncation=True)["input_ids"]
    similarities = F.cosine_similarity(*mean_pooled(tokenizer, peer, ids).chunk(2))
    F.mse_loss(similarities, targets).backward()
    model = BiEncoder.from_pretrained("minilm")
    batch = pack(list(map(model.tokenizer, texts)), np.arange(BATCH))
    with autocast(model.device, precision):
        u, v = batch.split(model.embed(batch))
    F.mse_loss(F.cosine_similarity(u, v), targets).backward()
    ours, theirs = dict(model.encoder.named_parameters()), dict(peer.named_parameters())
    names = name_table(model.encoder.config)  # type: ignore[arg-type]
    parts = [theirs[name] for several in names.values() for name in several]
    return relative_difference(gradient([ours[name] for name in names]), gradient(parts))


def gradient(parameters: Iterable[nn.Parameter]) -> Tensor:
    return torch.cat([one.grad.flatten() for one in parameters if one.grad is not None]).double()


def relative_difference(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).norm() / theirs.norm())


def surgery(args: argparse.Namespace) -> dict[str, Figures]:
    """Measure seconds of a step with PCGrad; ratios are to TorchJD's faster call."""
    sides, gradients = {}, []
    for method in (OURS, PEER, PEER_BY_PARTS):
        model, backward = three_tasks(method, args.data)
        model.eval()
        backward()
        gradients.append(gradient(model.parameters()))
        model.zero_grad()
        optimizer = torch.optim.AdamW(model.train().parameters(), LEARNING_RATE, fused=True)
        sides[method] = partial(timed, partial(update, optimizer, backward))
    seconds = in_rounds(sides, args.repetitions)
    found = figures(seconds, min(PEER, PEER_BY_PARTS, key=lambda name: median(seconds[name])))
    found[OURS]["gradient off by"] = relative_difference(*gradients[:2])
    return {"SST 16, Quora 16 pairs, STS 16 pairs": found}


def update(optimizer: torch.optim.Optimizer, backward: Callable[[], object]) -> None:
    backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def three_tasks(method: str, data: str) -> tuple[nn.Module, Callable[[], object]]:
    """Return MiniLM with the heads of three tasks, and the call that computes its gradients."""
    trainer = Trainer(RunConfig(tasks=CS224N, data=data, limit=16, combiner="pcgrad"), Path())
    in_order = Mock(permutation=np.arange)  # as below
    trainer.gradient.combiner.state["generator"] = in_order
    model, rows = trainer.model, np.arange(16)
    shared = list(model.bi_encoder.encoder.parameters())
    heads = [list(head.parameters()) for head in model.heads.values()]
    parameters: dict[str, Any] = {"shared_params": shared, "tasks_params": heads}
    if method == OURS:
        return model, lambda: trainer.gradient({name: [rows] for name in CS224N})
    model.bi_encoder.encoder.embeddings.word.sparse = False

    def torchjd() -> None:
        """Call TorchJD for several tasks on shared features, one row of the Jacobian at a time."""
        losses, features = list[Tensor](), list[Tensor]()
        for name, task in trainer.tasks.items():
            split = trainer.splits[name]["train"]
            texts = model.embed(split.batch(rows))
            outputs, targets = model.heads[name](*texts), split.targets(rows, CPU)
            several = task.compute_losses(outputs, texts, targets).values()
            losses.append(torch.stack([*several]).sum())
            features += texts
        autojac.mtl_backward(losses, features, parallel_chunk_size=1, **parameters)
        with patch("torch.randperm", torch.arange):
            by_parts, pcgrad = method == PEER_BY_PARTS, aggregation.PCGrad()
            autojac.jac_to_grad(shared, pcgrad, optimize_gramian_computation=by_parts)

    return model, torchjd
