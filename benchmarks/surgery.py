"""A three-task step with PCGrad: ours, plain backwards, and TorchJD, on two encoders.

SST 16 sentences, Quora 16 pairs, STS 16 pairs, the same batch for all; forward, gradients, fused
AdamW. Both encoders have the same weights and the same heads. Peak memory is that of a process of
its own.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.peers import plain_model, plain_tokenizer
from benchmarks.steps import LEARNING_RATE, plain_embeddings, tokenised
from benchmarks.timing import described, in_turns, seconds_table, timed
from minbert.batching import pack
from minbert.bi_encoder import BiEncoder
from multitask.combiners import pcgrad_weights
from multitask.gradients import GradientRows
from multitask.model import MultiTaskModel
from multitask.run import data_folder
from tasks import TASK_NAMES, build_task
from tasks.base import Embeddings

BATCH, MEMORY_STEPS = 16, 3
ORDER = [[1, 2], [0, 2], [0, 1]]  # of PCGrad's projections, the same for all sides
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Setting:
    """One encoder with the three heads: what the ways to combine gradients have in common."""

    shared: list[nn.Parameter]
    words: nn.Embedding
    heads: dict[str, nn.Module]
    embed: Mapping[str, Callable[[], Embeddings]]  # of each task's batch
    losses: Mapping[str, Callable[[Embeddings], Tensor]]
    models: tuple[nn.Module, ...]

    def train(self, mode: bool) -> None:
        """Dropout on or off."""
        for model in self.models:
            model.train(mode)

    def everything(self) -> Iterable[nn.Parameter]:
        return [*self.shared, *(p for head in self.heads.values() for p in head.parameters())]


def setting(encoder: str, data: str) -> Setting:
    """The encoder of `transformers`, or `ours`."""
    tasks = {name: build_task(name) for name in TASK_NAMES}
    examples = {n: task.read(data_folder(data), "train").some(BATCH) for n, task in tasks.items()}
    ours = MultiTaskModel(BiEncoder.from_pretrained("minilm"), tasks, seed=0)
    heads = {name: ours.heads[name] for name in tasks}

    def loss(name: str, texts: Embeddings) -> Tensor:
        targets = torch.from_numpy(examples[name].targets)
        return torch.stack(list(tasks[name].losses(heads[name], texts, targets).values())).sum()

    losses = {name: partial(loss, name) for name in tasks}
    if encoder == "ours":
        rows = np.arange(BATCH)
        lists = {n: tuple(map(ours.bi_encoder.tokenizer, e.texts)) for n, e in examples.items()}

        def embed(name: str) -> Embeddings:
            batch = pack(lists[name], rows)
            return batch.split(ours.embed(batch, "fp32"))

        inner = ours.bi_encoder.encoder
        shared, words = list(inner.parameters()), inner.embeddings.word
        models: tuple[nn.Module, ...] = (ours,)
    else:
        tokenizer, peer = plain_tokenizer(), plain_model("fp32", torch.device("cpu"))
        ids = {n: [tokenised(tokenizer, column) for column in e.texts] for n, e in examples.items()}

        def embed(name: str) -> Embeddings:
            if len(ids[name]) == 1:
                return tuple(plain_embeddings(peer, tokenizer, ids[name], one_pass=False))
            return tuple(plain_embeddings(peer, tokenizer, ids[name], one_pass=True))

        shared = [p for n, p in peer.named_parameters() if not n.startswith("pooler")]
        words = peer.embeddings.word_embeddings
        models = (ours, peer)
    return Setting(shared, words, heads, {n: partial(embed, n) for n in tasks}, losses, models)


def backwards(parts: Setting) -> None:
    """Three plain backwards, their gradients added up."""
    for name, loss in parts.losses.items():
        loss(parts.embed[name]()).backward()


def surgery(parts: Setting, rows: GradientRows) -> None:
    """PCGrad as the toolkit does it."""
    for index, (name, loss) in enumerate(parts.losses.items()):
        loss(parts.embed[name]()).backward()
        rows.collect(index)
    rows.reduce()
    gram = np.sum(list(rows.grams().values()), axis=0)
    rows.write_back(pcgrad_weights(gram, ORDER))


def torchjd(parts: Setting, optimize_gramian: bool) -> None:
    """TorchJD's call for several tasks on shared features, one row of the Jacobian at a time."""
    from torchjd.aggregation import PCGrad
    from torchjd.autojac import jac_to_grad, mtl_backward

    texts = {name: embed() for name, embed in parts.embed.items()}
    losses = [loss(texts[name]) for name, loss in parts.losses.items()]
    mtl_backward(
        losses,
        features=[embedding for several in texts.values() for embedding in several],
        tasks_params=[list(head.parameters()) for head in parts.heads.values()],
        shared_params=parts.shared,
        parallel_chunk_size=1,
    )
    with patch("torch.randperm", torch.arange):
        jac_to_grad(parts.shared, PCGrad(), optimize_gramian_computation=optimize_gramian)


def side(encoder: str, method: str, data: str) -> tuple[Callable[..., None], Setting]:
    """A method on an encoder: `step()`, or `step(False)` for its gradient alone; its setting."""
    parts = setting(encoder, data)
    parts.train(True)
    optimizer = torch.optim.AdamW(parts.everything(), LEARNING_RATE, fused=True)
    if method == "surgery":
        parts.words.sparse = True
        weight = parts.words.weight
        assert isinstance(weight, nn.Parameter)
        rows = GradientRows({"encoder": parts.shared}, weight)
    gradient: dict[str, Callable[[], None]] = {
        "backwards": lambda: backwards(parts),
        "surgery": lambda: surgery(parts, rows),
        "torchjd": lambda: torchjd(parts, optimize_gramian=False),
        "torchjd, Gramian by parts": lambda: torchjd(parts, optimize_gramian=True),
    }

    def step(move: bool = True) -> None:
        gradient[method]()
        if move:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return step, parts


METHODS = ("backwards", "surgery", "torchjd", "torchjd, Gramian by parts")
NAMES = {
    "backwards": "three plain backwards",
    "surgery": "our PCGrad",
    "torchjd": "TorchJD PCGrad",
    "torchjd, Gramian by parts": "TorchJD PCGrad, Gramian by parts",
}


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of a step and peak memory; ratios to TorchJD's fastest call on transformers."""
    sides = {
        f"{NAMES[method]}, {encoder} encoder": (encoder, method)
        for encoder in ("transformers", "ours")
        for method in METHODS
    }
    steps = {name: partial(timed, side(*key, args.data)[0]) for name, key in sides.items()}
    found = in_turns(steps, args.repetitions)
    peers = [name for name, (encoder, method) in sides.items()
             if encoder == "transformers" and method.startswith("torchjd")]  # fmt: skip
    best = min(peers, key=lambda name: statistics.median(found[name]))
    result = seconds_table(found, best)
    for name, key in sides.items():
        result[name]["peak_mb"] = peak_memory(*key, args.data)
    for encoder in ("transformers", "ours"):
        name = f"{NAMES['surgery']}, {encoder} encoder"
        result[name]["gradient_difference"] = difference(encoder, args.data)
    return described(args, "seconds", {"SST 16, Quora 16 pairs, STS 16 pairs": result})


def difference(encoder: str, data: str) -> float:
    """Our combined gradient of the encoder and heads against TorchJD's, over its norm."""
    gradients = []
    for method in ("surgery", "torchjd"):
        step, parts = side(encoder, method, data)
        parts.train(False)
        step(False)
        gradients.append(torch.cat([p.grad.flatten().double() for p in parts.everything()
                                    if p.grad is not None]))  # fmt: skip
    ours, theirs = gradients
    return float((ours - theirs).norm() / theirs.norm())


def peak_memory(encoder: str, method: str, data: str) -> float:
    """Megabytes that a process takes at most which does nothing but a few such steps."""
    command = [sys.executable, "-m", "benchmarks.surgery", encoder, method, data]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(ended.stdout.split()[-1])


def main() -> None:
    import resource

    step, _ = side(*sys.argv[1:4])
    for _ in range(MEMORY_STEPS):
        step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
