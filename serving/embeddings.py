"""The sentences of a file with their embeddings, made or read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from common.atomic_files import check_regular
from common.errors import UserError
from minbert.bi_encoder import BiEncoder
from tasks.text_files import read_sentences


def sentences_of(file: Path, column: str | None = None) -> list[str]:
    """All of them, in order; UserError where there is none."""
    found = list(read_sentences(file, column))
    if not found:
        raise UserError(f"{file}: expected at least one sentence, found none")
    return found


def embeddings_of(
    sentences: list[str], model: BiEncoder, kept: Path | None = None, precision: str = "fp32"
) -> np.ndarray:
    """Of unit length (n, H); from `kept`, an array that --mode encode wrote, where given."""
    if kept is None:
        return model.encode(sentences, precision, normalize=True, progress=True)
    check_regular(kept)
    try:
        array = np.load(kept, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{kept}: expected an array of --mode encode: {error}") from error
    if not isinstance(array, np.ndarray):
        raise UserError(f"{kept}: expected an array of --mode encode, found several")
    if array.shape != (len(sentences), model.width) or array.dtype != np.float32:
        raise UserError(
            f"{kept}: expected {len(sentences)} x {model.width} float32, one row a sentence, found "
            f"{' x '.join(map(str, array.shape))} {array.dtype}"
        )
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(1))[0]) + 1
        raise UserError(f"{kept}: expected finite numbers, found others in row {row}")
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    return np.asarray(array / np.maximum(lengths, 1e-12), np.float32)
