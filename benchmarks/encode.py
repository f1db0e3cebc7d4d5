"""Speed of embedding real text beside other libraries, and agreement of the embeddings."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks import peers
from benchmarks.timing import (
    gemm_seconds,
    in_rounds,
    make_result,
    rate_table,
    timed,
)
from minbert.bi_encoder import BiEncoder
from tasks import build_task, data_folder

PEER = "sentence-transformers fp32, batch 32"


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure one group per task: the first dev texts of QQP, then the dev sentences of SST."""
    device = torch.device(args.device)
    model = BiEncoder.from_pretrained("minilm").to(device)
    groups = {}
    for task in ("qqp", "sst"):
        examples = build_task(task).read(data_folder(args.data), "dev")
        texts = [text for column in examples.texts for text in column][: args.texts]
        groups[f"{task} dev, {len(texts)} sentences"] = compare(
            texts, model, args.precisions, args.repetitions, device
        )
    return make_result(args, "sentences/s", groups)


def compare(
    texts: list[str],
    model: BiEncoder,
    precisions: list[str],
    repetitions: int,
    device: torch.device,
) -> dict[str, Any]:
    tokens = float(model.tokenizer(texts).lengths.sum())
    encoders = build_sides(model, precisions, device)
    embeddings: dict[str, np.ndarray] = {}

    def side(name: str) -> Callable[[], float]:
        def run() -> float:
            return timed(lambda: embeddings.update({name: encoders[name](texts)}))

        return run

    limits = {
        f"limit of {precision} products": partial(gemm_seconds, tokens, precision, device)
        for precision in precisions
    }
    found = in_rounds({name: side(name) for name in encoders} | limits, repetitions)
    sides = rate_table(found, len(texts), PEER)
    for name, cosines in ((n, cosine(e, embeddings[PEER])) for n, e in embeddings.items()):
        sides[name] |= {"cosine_min": float(cosines.min()), "cosine_mean": float(cosines.mean())}
        for precision in precisions:
            if precision in name:
                limit = sides[f"limit of {precision} products"]["median"]
                sides[name]["share_of_limit"] = sides[name]["median"] / limit
    return sides


def build_sides(
    model: BiEncoder, precisions: list[str], device: torch.device
) -> dict[str, peers.Encode]:
    """Return all encoders by name."""
    tokenizer = peers.plain_tokenizer()
    sides: dict[str, peers.Encode] = {}
    for precision in dict.fromkeys(["fp32", *precisions]):
        reference = peers.sentence_transformer(precision, device)
        for size in (16, 32):
            name = f"sentence-transformers {precision}, batch {size}"
            sides[name] = peers.sentence_transformers_encode(reference, size)
        if precision not in precisions:
            continue
        plain = peers.plain_model(precision, device)
        sides[f"transformers {precision}, bucketed 64"] = peers.transformers_encode(
            plain, tokenizer, 64
        )
        if precision == "fp32" and device.type == "cpu":
            sides["ONNX Runtime fp32, bucketed 64"] = peers.onnx_encode(tokenizer, 64)
        sides[f"ours {precision}"] = partial(model.encode, precision=precision)
    return sides


def cosine(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of rows in float64: (n,)."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (one * other).sum(1) / norms
