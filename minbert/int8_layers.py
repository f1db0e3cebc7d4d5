"""Choice of layers that keep float products, as int8 would change the embeddings too much."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from common.errors import UserError
from common.json_files import read_json, write_json
from minbert.batching import Embed, TokenLists
from minbert.encoder import Encoder
from minbert.int8 import Int8Encoder, Int8Layer
from minbert.user_cache import cache_folder

SENTENCES = Path(__file__).parent / "calibration.txt"
MEAN, LEAST = 0.998, 0.985  # cosines to float32 embeddings that int8 must reach on SENTENCES
# Part of the checksum: a choice for another method is not used.
METHOD = "SmoothQuant 0.5, attention of packed tokens"


@dataclass(frozen=True)
class Int8Layers:
    """The layers, from 0, that keep float products, and the cosines to float32 with them."""

    kept: tuple[int, ...]
    cosine_mean: float
    cosine_min: float

    @property
    def suffices(self) -> bool:
        return self.cosine_mean >= MEAN and self.cosine_min >= LEAST


def choose_layers(
    encoder: Encoder,
    floats: Encoder,
    quantised: Sequence[Int8Layer],
    tokens: TokenLists,
    embed: Embed,
    pooling: str,
) -> Int8Encoder:
    """Return an encoder with float products in the fewest layers, as few as SENTENCES allow.

    Layers are kept one by one, each time the one that brings the embeddings nearest to float32,
    until they are near enough. The choice is kept in the user's cache, in one file per checksum of
    weights and tokens. `floats` has the layers that are kept, and `quantised` the others.
    """
    file = cache_folder() / "int8" / f"{input_hash(encoder, tokens, pooling)}.json"
    found = read_choice(file, len(quantised))
    if found is None:
        found = measure_layers(encoder, floats, quantised, tokens, embed)
        with suppress(OSError):  # the cache is not writable: the next process measures again
            file.parent.mkdir(parents=True, exist_ok=True)
            write_json(file, asdict(found))
    return with_kept(encoder, floats, quantised, found.kept)


def with_kept(
    encoder: Encoder, floats: Encoder, quantised: Sequence[Int8Layer], kept: Collection[int]
) -> Int8Encoder:
    """Return the encoder whose layers `kept` have float products."""
    pairs = enumerate(zip(floats.layers, quantised, strict=True))
    return Int8Encoder(encoder, [plain if n in kept else int8 for n, (plain, int8) in pairs])


def measure_layers(
    encoder: Encoder,
    floats: Encoder,
    quantised: Sequence[Int8Layer],
    tokens: TokenLists,
    embed: Embed,
) -> Int8Layers:
    """Return the fewest layers to keep, by measuring the cosines to float32 embeddings."""
    exact = torch.from_numpy(embed(encoder, tokens)).double()

    def measured(kept: tuple[int, ...]) -> Int8Layers:
        found = embed(with_kept(encoder, floats, quantised, kept), tokens)
        cosines = F.cosine_similarity(torch.from_numpy(found).double(), exact)
        return Int8Layers(kept, float(cosines.mean()), float(cosines.min()))

    best = measured(())
    while not best.suffices and isfinite(best.cosine_mean) and len(best.kept) < len(quantised):
        others = (number for number in range(len(quantised)) if number not in best.kept)
        tried = [measured((*best.kept, number)) for number in others]
        best = max(tried, key=lambda one: one.cosine_mean)
    return best


def input_hash(encoder: Encoder, tokens: TokenLists, pooling: str) -> str:
    """Return the SHA-256 of weights, tokens and pooling, as hexadecimal digits."""
    digest = hashlib.sha256(f"{METHOD} {pooling}".encode())
    digest.update(np.ascontiguousarray(tokens.ids).data)
    for name, value in encoder.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().contiguous().numpy().data)
    return digest.hexdigest()


def read_choice(file: Path, layers: int) -> Int8Layers | None:
    """Return an earlier choice; None if the file is missing or invalid."""
    try:
        content = read_json(file)
        kept = tuple(content.pop("kept"))
        if not all(isinstance(one, int) and 0 <= one < layers for one in kept):
            return None
        return Int8Layers(kept, **content)
    except (UserError, OSError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # measured again, and the file is rewritten
