"""Choice of layers that keep float products, as int8 would change the embeddings too much."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.errors import UserError
from common.json_files import read_json, write_json
from minbert.batching import TokenLists, pack, sorted_batches
from minbert.encoder import Encoder
from minbert.int8 import Int8Encoder, Magnitudes
from minbert.pooling import Pool
from minbert.user_cache import cache_folder

SENTENCES = Path(__file__).parent / "calibration.txt"
MEAN, LEAST = 0.998, 0.985  # cosines to float32 embeddings that int8 must reach on SENTENCES
CELLS = 2048
METHOD = "SmoothQuant 0.5"  # part of the checksum: a choice for another method is not used


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
    inputs: Sequence[Magnitudes],
    tokens: TokenLists,
    pool: Pool,
    pooling: str,
) -> Int8Layers:
    """Return the fewest layers to keep, from the user's cache or measured on `tokens`.

    Layers are kept one by one, each time the one that brings the embeddings nearest to float32,
    until they are near enough. The cache has one file per checksum of weights and tokens.
    """
    file = cache_folder() / "int8" / f"{checksum(encoder, tokens, pooling)}.json"
    found = read_choice(file, len(encoder.layers))
    if found is None:
        found = measure_layers(encoder, floats, inputs, tokens, pool)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_json(file, asdict(found))
        except OSError:
            return found  # the cache is not writable: the next process measures again
    return found


def measure_layers(
    encoder: Encoder,
    floats: Encoder,
    inputs: Sequence[Magnitudes],
    tokens: TokenLists,
    pool: Pool,
) -> Int8Layers:
    """Return the fewest layers to keep, by measuring the cosines to float32 embeddings."""
    exact = embeddings(encoder, tokens, pool)

    def with_kept(kept: tuple[int, ...]) -> Int8Layers:
        found = embeddings(Int8Encoder(encoder, floats, inputs, kept), tokens, pool)
        cosines = F.cosine_similarity(found.double(), exact.double())
        return Int8Layers(kept, float(cosines.mean()), float(cosines.min()))

    best = with_kept(())
    while not best.suffices and isfinite(best.cosine_mean) and len(best.kept) < len(encoder.layers):
        others = (n for n in range(len(encoder.layers)) if n not in best.kept)
        tried = [with_kept((*best.kept, number)) for number in others]
        best = max(tried, key=lambda one: one.cosine_mean)
    return best


@torch.inference_mode()
def embeddings(encoder: nn.Module, tokens: TokenLists, pool: Pool) -> Tensor:
    """Return the embeddings (n, H) of all tokens."""
    found = torch.empty(0)
    for rows in sorted_batches(tokens.lengths, CELLS):
        batch = pack([tokens], rows)
        some = pool(encoder(batch).float(), batch)
        if not len(found):
            found = torch.empty(len(tokens), some.shape[1])
        found[torch.from_numpy(rows)] = some
    return found


def checksum(encoder: Encoder, tokens: TokenLists, pooling: str) -> str:
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
