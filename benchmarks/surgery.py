"""A three-task step with PCGrad: ours, plain backward passes, and TorchJD, on two encoders.

All sides use the same batch of 16 SST sentences, 16 Quora pairs and 16 STS pairs. A step consists
of forward passes, gradients and fused AdamW. Both encoders have the same weights and heads. Peak
memory is measured in a separate process.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.peers import WIDTH, plain_model, plain_tokenizer
from benchmarks.steps import LEARNING_RATE, plain_embeddings, relative_difference, tokenised
from benchmarks.timing import in_rounds, make_result, seconds_table, timed
from minbert.bi_encoder import BiEncoder
from multitask.combiners import Combined, Combiner, pcgrad_weights
from multitask.gram_matrices import whole_gram
from multitask.loop.gradients import GradientRows
from multitask.loop.step import StepGradient
from multitask.loop.step_losses import StepLosses
from multitask.model import EncoderWithHeads
from multitask.settings.config import RunConfig
from tasks import CS224N, build_task, data_folder
from tasks.base import Embeddings, Task
from tasks.data import Split
from tasks.readers import Examples

BATCH, MEMORY_STEPS = 16, 3
ORDER = [[1, 2], [0, 2], [0, 1]]  # order of PCGrad's projections on all sides
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Setting:
    """One encoder with the three heads, and the losses of each task's batch."""

    shared: list[nn.Parameter]
    words: nn.Embedding
    heads: dict[str, nn.Module]
    embed: Mapping[str, Callable[[], Embeddings]]
    losses: Mapping[str, Callable[[Embeddings], Tensor]]
    models: tuple[nn.Module, ...]
    step: Callable[[], object] | None = None  # the toolkit's whole step, on its own encoder

    def everything(self) -> list[nn.Parameter]:
        return [*self.shared, *(p for head in self.heads.values() for p in head.parameters())]

    def train(self, mode: bool) -> None:
        """Turn dropout on or off."""
        for model in (*self.models, *self.heads.values()):
            model.train(mode)


class FixedOrder(Combiner):
    """PCGrad with a fixed order of projections, which the peer can use as well."""

    needs_rows = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        return Combined(pcgrad_weights(gram, ORDER), "projected")


def setting(encoder: str, data: str) -> Setting:
    """Load only the encoder of `transformers` or only `ours`, and return its setting."""
    tasks = {name: build_task(name) for name in CS224N}
    examples = {n: task.read(data_folder(data), "train").sample(BATCH) for n, task in tasks.items()}
    return (our_setting if encoder == "ours" else peer_setting)(tasks, examples)


def our_setting(tasks: dict[str, Task], examples: dict[str, Examples]) -> Setting:
    model = EncoderWithHeads(BiEncoder.from_pretrained("minilm"), tasks, seed=0)
    tokenizer, inner = model.bi_encoder.tokenizer, model.bi_encoder.encoder
    splits = {n: {"train": Split(e, tuple(map(tokenizer, e.texts)))} for n, e in examples.items()}
    config = RunConfig(mode="multitask", tasks=CS224N)
    gradient = StepGradient(StepLosses(model, tasks, splits, {}, config), FixedOrder())
    inner.embeddings.word.sparse = False  # until surgery sets it
    rows = np.arange(BATCH)

    def embed(name: str) -> Embeddings:
        batch = splits[name]["train"].batch(rows)
        return model.embed(batch)

    return Setting(
        list(inner.parameters()),
        inner.embeddings.word,
        dict(model.heads.items()),
        {name: partial(embed, name) for name in tasks},
        task_losses(tasks, examples, model.heads),
        (model,),
        lambda: gradient({name: [rows] for name in tasks}),
    )


def peer_setting(tasks: dict[str, Task], examples: dict[str, Examples]) -> Setting:
    tokenizer, model = plain_tokenizer(), plain_model("fp32", torch.device("cpu"))
    torch.manual_seed(0)
    heads = {name: task.build_head(WIDTH) for name, task in tasks.items()}
    ids = {n: [tokenised(tokenizer, column) for column in e.texts] for n, e in examples.items()}

    def embed(name: str) -> Embeddings:
        one_pass = len(ids[name]) == 2
        return tuple(plain_embeddings(model, tokenizer, ids[name], one_pass))

    return Setting(
        [p for n, p in model.named_parameters() if not n.startswith("pooler")],
        model.embeddings.word_embeddings,
        heads,
        {name: partial(embed, name) for name in tasks},
        task_losses(tasks, examples, heads),
        (model,),
    )


def task_losses(
    tasks: dict[str, Task], examples: dict[str, Examples], heads: Any
) -> dict[str, Callable[[Embeddings], Tensor]]:
    def loss(name: str, texts: Embeddings) -> Tensor:
        targets = torch.from_numpy(examples[name].targets)
        losses = tasks[name].compute_losses(heads[name](*texts), texts, targets)
        return torch.stack(list(losses.values())).sum()

    return {name: partial(loss, name) for name in tasks}


def backwards(parts: Setting) -> None:
    """Run one plain backward pass per task and add up the gradients."""
    for name, loss in parts.losses.items():
        loss(parts.embed[name]()).backward()


def surgery(parts: Setting, rows: GradientRows) -> None:
    """Run the toolkit's PCGrad: its whole step, or its gradient rows on another encoder."""
    if parts.step is not None:
        parts.step()
        return
    for index, (name, loss) in enumerate(parts.losses.items()):
        loss(parts.embed[name]()).backward()
        rows.collect(index)
    rows.reduce()
    rows.write_back(pcgrad_weights(whole_gram(rows.grams()), ORDER))


def torchjd(parts: Setting, optimize_gramian: bool) -> None:
    """Call TorchJD for several tasks on shared features, one row of the Jacobian at a time."""
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
    """Return a method's step on an encoder and its setting; `step(False)` keeps the weights."""
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
    """Measure seconds per step and peak memory; ratios are to TorchJD's fastest on transformers."""
    sides = {
        f"{NAMES[method]}, {encoder} encoder": (encoder, method)
        for encoder in ("transformers", "ours")
        for method in METHODS
    }
    steps = {name: partial(timed, side(*key, args.data)[0]) for name, key in sides.items()}
    found = in_rounds(steps, args.repetitions)
    peers = [name for name, (encoder, method) in sides.items()
             if encoder == "transformers" and method.startswith("torchjd")]  # fmt: skip
    best = min(peers, key=lambda name: statistics.median(found[name]))
    result = seconds_table(found, best)
    for name, key in sides.items():
        result[name]["peak_mb"] = peak_memory(*key, args.data)
    for encoder in ("transformers", "ours"):
        name = f"{NAMES['surgery']}, {encoder} encoder"
        result[name]["gradient_difference"] = gradient_difference(encoder, args.data)
    return make_result(args, "seconds", {"SST 16, Quora 16 pairs, STS 16 pairs": result})


def gradient_difference(encoder: str, data: str) -> float:
    """Return the relative difference of our combined gradient, heads included, to TorchJD's."""
    gradients = []
    for method in ("surgery", "torchjd"):
        step, parts = side(encoder, method, data)
        parts.train(False)
        step(False)
        gradients.append([p.grad for p in parts.everything() if p.grad is not None])
    return relative_difference(*gradients)


def peak_memory(encoder: str, method: str, data: str) -> float:
    """Return the peak memory in megabytes of a process that runs only a few such steps."""
    command = [sys.executable, "-m", "benchmarks.surgery", encoder, method, data]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(ended.stdout.split()[-1])


def resident_peak() -> float:
    """Return the peak resident memory of this process in megabytes.

    `getrusage` is not suitable: its figure starts with the memory of the parent process.
    """
    text = Path("/proc/self/status").read_text()
    return float(text.split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    step, _ = side(*sys.argv[1:4])
    for _ in range(MEMORY_STEPS):
        step()
    print(resident_peak())


if __name__ == "__main__":
    main()
