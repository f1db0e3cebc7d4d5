"""Sentences/s of training a BiLSTM, forward and backward, compared with PyTorch's LSTM.

Our recurrence needs gradients, unequal lengths and a CPU; otherwise our encoder is PyTorch's packed
LSTM. Padding changes PyTorch's states, because its reverse direction begins in the padding.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from benchmarks.steps import random_rows, relative_difference, seconds_per_example
from benchmarks.timing import in_rounds, rate_table
from minbert.batching import TokenLists, pack
from minbert.bilstm import BiLSTM, random_bilstm
from minbert.config import BiLSTMConfig
from minbert.words import build_vocabulary, word_tokenizer
from tasks import build_task, data_folder

SHAPES = {"1 x 128": (1, 128), "3 x 512": (3, 512)}  # layers, units: SuperConText's two
BATCH, STEPS = 200, 1  # sentences per step, steps per repetition
PEER = "PyTorch, packed"


def measure(args: argparse.Namespace) -> dict[str, Any]:
    device = torch.device(args.device)
    texts = build_task("sst").read(data_folder(args.data), "train").texts[0][: args.texts]
    words = [*build_vocabulary(texts)]
    tokens = word_tokenizer(words, 512)(texts)
    groups = {}
    for shape, (layers, units) in SHAPES.items():
        config = BiLSTMConfig(
            int(tokens.ids.max()) + 1, units=units, num_layers=layers, dropout=0.0
        )
        encoder = random_bilstm(config).to(device)
        steps: dict[str, Callable[[np.ndarray], Tensor]] = {
            PEER: partial(pytorch_states, encoder, tokens, packed=True),
            "PyTorch, padded": partial(pytorch_states, encoder, tokens, packed=False),
            "ours": partial(our_states, encoder, tokens),
        }
        sides = {name: side(states, encoder, len(tokens), device) for name, states in steps.items()}
        found = rate_table(in_rounds(sides, args.repetitions), 1.0, PEER)
        batch = np.arange(min(BATCH, len(tokens)))
        grads = [gradient(encoder, steps[name], batch) for name in ("ours", PEER)]
        found["ours"]["gradient_difference"] = relative_difference(*grads)
        groups[f"SST, BiLSTM of {shape} units, {BATCH} sentences per step"] = found
    return {
        "unit": "sentences/s",
        "repetitions": args.repetitions,
        "data": Path(args.data).name,
        "groups": groups,
    }


def our_states(encoder: BiLSTM, tokens: TokenLists, rows: np.ndarray) -> Tensor:
    """Return the states (T, 2U) of our encoder."""
    return encoder(pack([tokens], rows).to(encoder.embeddings.word.weight.device))


def pytorch_states(encoder: BiLSTM, tokens: TokenLists, rows: np.ndarray, packed: bool) -> Tensor:
    """Return the states (T, 2U) of PyTorch's LSTM with the same weights."""
    device = encoder.embeddings.word.weight.device
    batch = pack([tokens], rows)
    ids = pad_sequence(list(batch.ids.split(batch.lengths.tolist())))
    hidden: Any = encoder.embeddings.word(ids.to(device))
    if packed:
        hidden = pack_padded_sequence(hidden, batch.lengths, enforce_sorted=False)
    for layer in encoder.layers:
        hidden = layer(hidden)[0]
    if packed:
        hidden = pad_packed_sequence(hidden)[0]
    hidden = hidden.transpose(0, 1)
    real = torch.arange(hidden.shape[1]) < batch.lengths[:, None]
    return hidden[real.to(device)]


def side(
    states: Callable[[np.ndarray], Tensor], encoder: BiLSTM, count: int, device: torch.device
) -> Callable[[], float]:
    """Return a function that measures seconds per sentence, forward and backward."""
    batches = random_rows(count, min(BATCH, count))

    def step() -> int:
        rows = next(batches)
        gradient(encoder, states, rows)
        return len(rows)

    return lambda: seconds_per_example(step, STEPS, device)


def gradient(
    encoder: BiLSTM, states: Callable[[np.ndarray], Tensor], rows: np.ndarray
) -> list[Tensor]:
    """Return the gradient of the states' mean square."""
    encoder.zero_grad(set_to_none=True)
    states(rows).square().mean().backward()
    return [p.grad for p in encoder.parameters() if p.grad is not None]
