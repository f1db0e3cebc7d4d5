"""Scoring all pairs of n sentences as a bi-encoder and as a cross-encoder with the same weights.

BEES, section 2, and Reimers and Gurevych (2019): n passes and n (n - 1) / 2 products, or one pass
per pair. (BEES counts 499,500 pairs for n = 10,000; this is the number for n = 1,000.) The
cross-encoder is timed on random pairs, and its time is scaled to all pairs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.timing import described, in_rounds, spread, timed
from minbert.bi_encoder import BiEncoder
from tasks import build_task, data_folder

SIZES = (1_000, 10_000)
PAIRS = 512  # for timing the cross-encoder
BLOCK = 1_000  # rows of the similarity matrix at a time
REPETITIONS = 3  # maximum, because a side takes half a minute


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure each number of Quora training questions, at most as many as the data have."""
    model = BiEncoder.from_pretrained("minilm").to(torch.device(args.device)).eval()
    examples = build_task("qqp").read(data_folder(args.data), "train")
    texts = list(dict.fromkeys(text for column in examples.texts for text in column))
    repetitions = min(args.repetitions, REPETITIONS)
    groups = {
        f"{size:,} sentences, {size * (size - 1) // 2:,} pairs": compare(
            texts[:size], model, repetitions
        )
        for size in sorted({min(size, len(texts)) for size in SIZES})
    }
    return described(args, "seconds", groups) | {"repetitions": repetitions}


def compare(texts: Sequence[str], model: BiEncoder, repetitions: int) -> dict[str, Any]:
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
    return model.encode_window(model.encoder, tokens, False, lambda _: None)
