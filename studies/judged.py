"""An encoder pre-trained, then judged frozen and fine-tuned: one seed of a cell."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minbert.words import build_bilstm
from multitask.assembly import build_tasks
from multitask.config import RunConfig
from multitask.environment import environment
from multitask.run import complete
from pretrain.probe import linear_evaluation
from pretrain.run import tasks_of
from tasks import data_folder


@dataclass(frozen=True)
class Words:
    """The shape of a BiLSTM."""

    layers: int
    units: int
    dropout: float

    def name(self, vectors: str | None) -> str:
        """Under which a configuration has it."""
        known = f"-{Path(vectors).stem}" if vectors else ""
        return f"bilstm-{self.layers}x{self.units}-dropout{self.dropout:g}{known}"


def pretrained_and_judged(
    config: RunConfig,
    folder: Path,
    words: Words | None,
    vectors: str | None,
    tuned_batch_size: int,
) -> dict[str, Any]:
    """Pre-train as `config` says; the figures of a linear evaluation and of fine-tuning.

    A BiLSTM begins with the words of the training examples, and `vectors` where there are any.
    Fine-tuning is cross-entropy for as many epochs again, with batches of its own size.
    """
    begin = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    if words is not None:
        encoder = folder / "words"
        if not (encoder / "config.json").exists():
            write_words(encoder, config, words, vectors)
        config = replace(config, encoder=str(encoder))
    pretrained = complete(config, folder / "pretrained", resume=True, make_tasks=tasks_of)
    after = RunConfig(
        mode="probe",
        tasks=config.tasks,
        data=config.data,
        limit=config.limit,
        dev_limit=config.dev_limit,
        protocol=config.protocol,
        encoder=config.encoder,
        pooling=config.pooling,
        init=str(folder / "pretrained"),
        seed=config.seed,
        precision=config.precision,
        linear=config.linear,
    )
    linear, _ = linear_evaluation(after)
    tuning = replace(
        after,
        mode="single",
        epochs=config.epochs,
        evaluate_every=config.epochs,
        keep="last",
        lr=config.lr,
        head_lr=config.head_lr,
        weight_decay=config.weight_decay,
        batch_size=tuned_batch_size,
    )
    tuned = complete(tuning, folder / "tuned", resume=True)
    kept = ("dev", "test")
    return {
        "pretrained": {key: pretrained[key] for key in (*kept, "steps") if key in pretrained},
        "linear": {key: linear[key] for key in (*kept, "strength")},
        "tuned": {key: tuned[key] for key in kept},
        "seconds": round(time.perf_counter() - begin, 1),
        "environment": environment(),
    }


def write_words(folder: Path, config: RunConfig, words: Words, vectors: str | None) -> None:
    """A BiLSTM over the words of the training examples."""
    texts = [
        text
        for task in build_tasks(replace(config, objective=None)).values()
        for column in task.read(data_folder(config.data), "train", config.limit).texts
        for text in column
    ]
    build_bilstm(
        folder,
        texts,
        Path(vectors) if vectors else None,
        units=words.units,
        num_layers=words.layers,
        dropout=words.dropout,
        pooling=config.pooling or "mean",
        seed=config.seed,
    )
