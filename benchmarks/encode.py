"""Speed and agreement of embeddings of real text; all pairs by a bi-encoder and a cross-encoder."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from benchmarks import peers
from benchmarks.timing import (
    LAYERS,
    gemm_seconds,
    in_rounds,
    limit_name,
    make_result,
    rate_table,
    share_of_limit,
    spread,
    timed,
)
from minbert.bi_encoder import BiEncoder
from minbert.config import PRECISIONS
from minbert.int8_layers import LEAST, MEAN
from tasks import build_task, data_folder

PEER = "sentence-transformers fp32, batch 32"
BATCH_SIZES = (16, 32, 64, 128)  # candidates for sentence-transformers' best
SIZES = (1_000, 10_000)  # sentences of all pairs
PAIRS = 512  # for timing the cross-encoder
BLOCK = 1_000  # rows of the similarity matrix at a time
REPETITIONS = 3  # maximum for all pairs, because a side takes half a minute


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
    result = make_result(args, "sentences/s", groups)
    return result | {"recommendation": recommendation(groups, args.precisions)}


def recommendation(groups: Mapping[str, Mapping[str, Any]], precisions: Sequence[str]) -> str:
    """Return a line on the fastest precision whose embeddings are near those of fp32."""
    near: dict[str, float] = {}  # precision -> geometric mean of its speeds
    for precision in precisions:
        ours = [sides[f"ours {precision}"] for sides in groups.values()]
        worst = [min(one[key] for one in ours) for key in ("cosine_min", "cosine_mean")]
        if worst[0] >= LEAST and worst[1] >= MEAN:
            near[precision] = float(np.exp(np.mean([np.log(one["median"]) for one in ours])))
    limits = f"cosines of at least {LEAST}, on average {MEAN}"
    if not near:
        return f"none of the precisions has {limits}"
    best = max(near, key=lambda precision: near[precision])
    others = [f"{near[best] / near[one]:.2f} x {one}" for one in near if one != best]
    beside = f", {' and '.join(others)}" if others else ""
    return f"fastest precision here with {limits}: {best}{beside}"


def compare(
    texts: list[str],
    model: BiEncoder,
    precisions: list[str],
    repetitions: int,
    device: torch.device,
) -> dict[str, Any]:
    tokens = float(model.tokenizer(texts).lengths.sum())
    encoders = build_sides(texts, model, precisions, device)
    embeddings: dict[str, np.ndarray] = {}

    def side(name: str) -> Callable[[], float]:
        def run() -> float:
            return timed(lambda: embeddings.update({name: encoders[name](texts)}))

        return run

    def limit(precision: str) -> Callable[[], float]:
        return lambda: gemm_seconds(tokens, LAYERS, precision, device)

    limits = {limit_name(precision): limit(precision) for precision in precisions}
    found = in_rounds({name: side(name) for name in encoders} | limits, repetitions)
    sides = rate_table(found, len(texts), PEER)
    for name, cosines in ((n, cosine(e, embeddings[PEER])) for n, e in embeddings.items()):
        sides[name] |= {
            "share_of_limit": share_of_limit(sides, name, precisions),
            "cosine_min": float(cosines.min()),
            "cosine_mean": float(cosines.mean()),
        }
    return sides


def build_sides(
    texts: list[str], model: BiEncoder, precisions: list[str], device: torch.device
) -> dict[str, peers.Encode]:
    """Return all encoders by name; sentence-transformers also with its best batch size."""
    tokenizer = peers.plain_tokenizer()
    sides: dict[str, peers.Encode] = {}
    for precision in dict.fromkeys(["fp32", *precisions]):
        if precision not in PRECISIONS:
            sides[f"ours {precision}"] = partial(model.encode, precision=precision)
            continue
        reference = peers.sentence_transformer(precision, device)
        best = best_batch_size(reference, texts)
        for size in sorted({32, best}):
            name = f"sentence-transformers {precision}, batch {size}"
            sides[name] = peers.sentence_transformers_encode(reference, size)
        if precision not in precisions:
            continue
        plain = peers.plain_model(precision, device)
        sides[f"transformers {precision}, padded 32"] = peers.transformers_encode(
            plain, tokenizer, 32, bucketed=False
        )
        sides[f"transformers {precision}, bucketed 64"] = peers.transformers_encode(
            plain, tokenizer, 64, bucketed=True
        )
        if precision == "fp32" and device.type == "cpu":
            if find_spec("onnxruntime"):
                sides["ONNX Runtime fp32, bucketed 64"] = peers.onnx_encode(tokenizer, 64)
            else:
                print("onnxruntime is not installed: its side is skipped")
        sides[f"ours {precision}"] = partial(model.encode, precision=precision)
    return sides


def best_batch_size(model: Any, texts: list[str]) -> int:
    """Return the fastest of `BATCH_SIZES` on the first texts, best of two runs."""
    some = texts[:256]

    def seconds(size: int) -> float:
        encode = peers.sentence_transformers_encode(model, size)
        return min(timed(lambda: encode(some)) for _ in range(2))

    return min(BATCH_SIZES, key=seconds)


def cosine(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of rows in float64: (n,)."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (one * other).sum(1) / norms


def all_pairs(args: argparse.Namespace) -> dict[str, Any]:
    """Score all pairs of n sentences as a bi-encoder and as a cross-encoder with the same weights.

    BEES, section 2, and Reimers and Gurevych (2019): n passes and n (n - 1) / 2 products, or one
    pass per pair. (BEES counts 499,500 pairs for n = 10,000; this is the number for n = 1,000.) The
    cross-encoder is timed on random pairs, and its time is scaled to all pairs. The sentences are
    Quora training questions, at most as many as the data have.
    """
    model = BiEncoder.from_pretrained("minilm").to(torch.device(args.device)).eval()
    examples = build_task("qqp").read(data_folder(args.data), "train")
    texts = list(dict.fromkeys(text for column in examples.texts for text in column))
    repetitions = min(args.repetitions, REPETITIONS)
    groups = {
        f"{size:,} sentences, {size * (size - 1) // 2:,} pairs": compare_pairs(
            texts[:size], model, repetitions
        )
        for size in sorted({min(size, len(texts)) for size in SIZES})
    }
    return make_result(args, "seconds", groups) | {"repetitions": repetitions}


def compare_pairs(texts: Sequence[str], model: BiEncoder, repetitions: int) -> dict[str, Any]:
    """Return the seconds of each method, and their ratio to the bi-encoder's."""
    pairs = len(texts) * (len(texts) - 1) // 2
    draw = np.random.default_rng(0)
    first, second = ([texts[i] for i in draw.integers(len(texts), size=PAIRS)] for _ in range(2))
    found = in_rounds(
        {
            "bi-encoder": lambda: timed(lambda: all_similarities(model, texts)),
            f"cross-encoder, from {PAIRS} pairs": lambda: (
                timed(lambda: joint_embeddings(model, first, second)) * pairs / PAIRS
            ),
        },
        repetitions,
    )
    reference = float(np.median(found["bi-encoder"]))
    return {
        name: spread(values) | {"ratio": float(np.median(values)) / reference}
        for name, values in found.items()
    }


def all_similarities(model: BiEncoder, texts: Sequence[str]) -> float:
    """Compute the cosines of all pairs in blocks of rows; return the largest off the diagonal."""
    embeddings = torch.from_numpy(model.encode(texts, normalize=True))
    largest = -1.0
    for begin in range(0, len(embeddings), BLOCK):
        block = embeddings[begin : begin + BLOCK] @ embeddings.T
        block.diagonal(begin).fill_(-1)
        largest = max(largest, float(block.max()))
    return largest


def joint_embeddings(model: BiEncoder, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """Encode two sentences as one sequence; a score would need one more product."""
    tokens = model.tokenizer(first, second)
    return model.encode_window(model.encoder, tokens)
