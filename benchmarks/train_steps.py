"""Training steps on one task: STS, SimCSE, SMART, and contrastive terms or label embeddings."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks import peers
from benchmarks.steps import (
    LEARNING_RATE,
    Loss,
    bucketed_rows,
    check_gradient,
    cosine_loss,
    info_nce,
    own_step,
    plain_side,
    seconds_per_example,
    stepper,
    tokenised,
)
from benchmarks.timing import (
    LAYERS,
    gemm_seconds,
    in_rounds,
    limit_name,
    make_result,
    rate_table,
    share_of_limit,
)
from minbert.batching import pack
from minbert.bi_encoder import BiEncoder
from minbert.precision import autocast
from multitask.run import make_trainer
from multitask.settings.config import RunConfig
from tasks import build_task, data_folder
from tasks.readers import Examples

Sides = dict[str, Callable[[], float]]
BATCH = {"sts": 32, "simcse": 64, "smart": 32, "contrastive": 32}  # examples per step
STEPS = {"sts": 4, "simcse": 2, "smart": 2, "contrastive": 4}  # per repetition
SMART_PEER = "smart-pytorch on transformers"
OBJECTIVES: dict[str, dict[str, Any]] = {
    "CE": {},
    "CE + SCL": {"objective": "scl"},
    "CE + LS": {"objective": "ls"},
    "CE + EPO, at the embeddings": {"objective": "epo", "gradients": "representation"},
    "CE + EPO, at the parameters": {"objective": "epo"},
    "LaCon-vanilla": {"objective": "lacon"},
    "LaCon-fusion": {"objective": "lacon-fusion"},
}


def config_of(args: argparse.Namespace, task: str, batch: int, **settings: Any) -> RunConfig:
    """Return a single-task configuration; similarities have the scale of the other sides."""
    if task == "sts":
        settings["similarity_scale"] = 1.0
    common: dict[str, Any] = {"data": args.data, "device": args.device, "batch_size": batch}
    return RunConfig(mode="single", tasks=(task,), **common, **settings)


def sts(args: argparse.Namespace) -> dict[str, Any]:
    """Measure training on STS with the squared error of the cosine, in pairs/s."""
    device, batch, steps = torch.device(args.device), BATCH["sts"], STEPS["sts"]
    examples = build_task("sts").read(data_folder(args.data), "train")
    assert examples.targets is not None
    targets = torch.from_numpy(examples.targets) / 5
    on_device = targets.to(device)

    def plain(precision: str, one_pass: bool) -> Callable[[], float]:
        def loss_of(rows: np.ndarray) -> Loss:
            return cosine_loss(on_device[torch.from_numpy(rows)])

        return plain_side(examples.texts, loss_of, batch, steps, precision, device, one_pass)

    tokenizer = peers.plain_tokenizer()
    lists = [ids for column in examples.texts for ids in tokenised(tokenizer, column)]
    tokens = sum(map(len, lists)) / len(examples.texts[0])  # of a pair
    sides: Sides = {}
    with tempfile.TemporaryDirectory() as folder:
        for precision in dict.fromkeys(["fp32", *args.precisions]):
            name = f"sentence-transformers trainer {precision}"
            sides[name] = trainer_side(examples, precision, device, folder)
        for precision in args.precisions:
            if precision == "fp32":
                sides["transformers fp32, two passes, random"] = plain(precision, one_pass=False)
            sides[f"transformers {precision}, one pass, bucketed"] = plain(precision, one_pass=True)
            sides[f"ours {precision}"] = training_loop(args, precision, Path(folder))
            sides[limit_name(precision)] = partial(
                gemm_seconds, tokens, LAYERS, precision, device, training=True
            )
        found = in_rounds(sides, args.repetitions)
    table = rate_table(found, 1.0, "sentence-transformers trainer fp32")
    limits = [limit_name(precision) for precision in args.precisions]
    for name in table.keys() - limits:
        table[name]["share_of_limit"] = share_of_limit(table, name, args.precisions)
    for precision in args.precisions:
        table[f"ours {precision}"]["gradient_difference"] = check_gradient(
            examples.sample(batch).texts, cosine_loss(targets[:batch]), precision, one_pass=True
        )
    return make_result(args, "pairs/s", {f"STS, {batch} pairs per step, fused AdamW": table})


def training_loop(args: argparse.Namespace, precision: str, folder: Path) -> Callable[[], float]:
    """Return the training loop of `run.py --mode single --task sts`."""
    config = config_of(
        args,
        "sts",
        BATCH["sts"],
        task_options={"sts": {"head": "cosine", "activation": "none"}},  # as in the peers
        lr=LEARNING_RATE,
        precision=precision,
        epochs=1000,
    )
    trainer, drawn = make_trainer(config, folder), np.zeros(1, np.int64)
    trainer.model.train()
    device = torch.device(args.device)
    return lambda: seconds_per_example(
        lambda: trainer.train_step(drawn).examples, STEPS["sts"], device
    )


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

    model, batch, steps = peers.sentence_transformer("fp32", device), BATCH["sts"], STEPS["sts"]
    first, second = examples.texts
    scores = [float(target) / 5 for target in examples.targets]
    trainer = PeerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=batch,
            max_steps=steps + 1,
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
        return (ends[-1] - ends[0]) / (steps * batch)

    return run


def simcse(args: argparse.Namespace) -> dict[str, Any]:
    """Measure a SimCSE step in sentences/s: two encodings with different dropout masks."""
    device, batch = torch.device(args.device), BATCH["simcse"]
    texts = build_task("qqp").read(data_folder(args.data), "train").texts[0][: args.texts]
    sides: Sides = {}
    for precision in dict.fromkeys(["fp32", *args.precisions]):
        sides[f"transformers {precision}, two passes"] = plain_side(
            [texts, texts],
            lambda rows: info_nce,
            batch,
            STEPS["simcse"],
            precision,
            device,
            one_pass=False,
        )
        sides[f"ours {precision}"] = packed_views(texts, precision, device)
    found = rate_table(in_rounds(sides, args.repetitions), 1.0, "transformers fp32, two passes")
    for name in sides:
        if name.startswith("ours"):
            found[name]["gradient_difference"] = check_gradient(
                [texts[:batch]] * 2, info_nce, name.removeprefix("ours "), one_pass=False
            )
    groups = {f"Quora, {batch} sentences per step, fused AdamW": found}
    return make_result(args, "sentences/s", groups)


def packed_views(texts: list[str], precision: str, device: torch.device) -> Callable[[], float]:
    """Return our side, which encodes both views in one packed pass."""
    model = BiEncoder.from_pretrained("minilm").to(device).train()
    tokens = model.tokenizer(texts)
    batches = bucketed_rows(tokens.lengths, BATCH["simcse"])

    def loss_of() -> tuple[Tensor, int]:
        rows = next(batches)
        batch = pack([tokens, tokens], rows)
        with autocast(device, precision):
            views = batch.split(model.embed(batch))
        return info_nce(*views), len(rows)

    step = stepper(model, loss_of)
    return lambda: seconds_per_example(step, STEPS["simcse"], device)


def smart(args: argparse.Namespace) -> dict[str, Any]:
    """Measure a step with and without SMART in examples/s: ours, and smart-pytorch's.

    SMART has one inner step. The ratio is at least 8/3: a plain step is a forward pass and a
    backward pass of twice its work; the noise adds a forward and half a backward pass, the term a
    whole step.
    """
    groups, has_peer = {}, find_spec("smart_pytorch") is not None
    batch, steps = BATCH["smart"], STEPS["smart"]
    for task in ("sst", "sts"):
        sides: Sides = {}
        for precision in args.precisions:
            for name, weight in (("", {}), (", SMART", {task: 1.0})):
                config = config_of(args, task, batch, precision=precision, smart_weight=weight)
                sides[f"ours {precision}{name}"] = own_step(config, steps)
        if task == "sst" and has_peer:  # the peer perturbs a single text
            sides["transformers fp32"] = smart_peer(False, args)
            sides[SMART_PEER] = smart_peer(True, args)
        found = rate_table(in_rounds(sides, args.repetitions), 1.0, f"ours {args.precisions[0]}")
        for name, side in found.items():
            plain = "transformers fp32" if name == SMART_PEER else name.removesuffix(", SMART")
            side["times_plain"] = found[plain]["median"] / side["median"]
        groups[f"{task}, {batch} examples per step, fused AdamW"] = found
    if not has_peer:
        print("smart-pytorch is skipped: run pip install --no-deps smart-pytorch==0.0.4")
    return make_result(args, "examples/s", groups)


def smart_peer(smart: bool, args: argparse.Namespace) -> Callable[[], float]:
    """Return a hand-written loop on SST in length buckets, with or without smart-pytorch's loss."""
    from smart_pytorch import SMARTLoss, kl_loss, sym_kl_loss

    device = torch.device(args.device)
    examples = build_task("sst").read(data_folder(args.data), "train")
    tokenizer, encoder = peers.plain_tokenizer(), peers.plain_model("fp32", device).train()
    head = build_task("sst").build_head(peers.WIDTH).to(device)
    model = torch.nn.ModuleList([encoder, head])
    ids = tokenised(tokenizer, examples.texts[0])
    batches = bucketed_rows(np.array([len(one) for one in ids]), BATCH["smart"])
    targets = torch.from_numpy(np.asarray(examples.targets))

    def forward() -> tuple[Tensor, int]:
        rows = next(batches)
        inputs = peers.pad(tokenizer, [ids[row] for row in rows]).to(device)
        mask = inputs["attention_mask"]

        # smart-pytorch's example for BERT and mt-dnn perturb the output of the embedding module.
        visible = mask[:, None, None, :].bool()  # broadcast over heads and tokens

        def logits(embedded: Tensor) -> Tensor:
            states = encoder.encoder(embedded, attention_mask=visible).last_hidden_state
            return head(peers.mean_pooled(states, mask))

        embedded = encoder.embeddings(inputs["input_ids"])
        clean = logits(embedded)
        loss = F.cross_entropy(clean, targets[rows].to(device))
        if smart:
            loss = loss + SMARTLoss(logits, kl_loss, sym_kl_loss)(embedded, clean)
        return loss, len(rows)

    step = stepper(model, forward)
    return lambda: seconds_per_example(step, STEPS["smart"], device)


def contrastive(args: argparse.Namespace) -> dict[str, Any]:
    """Measure a step with the terms of SCL-MOO or LaCon, in examples/s.

    EPO needs one gradient per objective: at the embeddings three small gradients and one backward
    pass through the encoder, at the parameters three backward passes.
    """
    groups, batch = {}, BATCH["contrastive"]
    for precision in args.precisions:
        sides: Sides = {}
        for name, settings in OBJECTIVES.items():
            config = config_of(args, "sst", batch, precision=precision, **settings)
            sides[name] = own_step(config, STEPS["contrastive"])
        found = rate_table(in_rounds(sides, args.repetitions), 1.0, "CE")
        for side in found.values():
            side["times_plain"] = found["CE"]["median"] / side["median"]
        groups[f"SST, {batch} examples per step, {precision}, fused AdamW"] = found
    return make_result(args, "examples/s", groups)
