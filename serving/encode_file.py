"""Embedding a file of sentences into an array on disk, window by window."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common.errors import UserError
from minbert.bi_encoder import BiEncoder
from serving.empty_texts import is_empty, warn_of_empty_texts
from tasks.tables import read_sentences


def encode_file(
    model: BiEncoder,
    source: Path,
    column: str | None,
    total: int,
    target: Path,
    precision: str = "fp32",
    normalize: bool | None = None,
) -> str:
    """Write the embeddings of `total` sentences to `target`; return a line with the speed.

    The rows of empty texts are NaN, and are counted in a Notice. Raise UserError if the
    file has another number of sentences.
    """
    array = np.lib.format.open_memmap(target, "w+", np.float32, (total, model.width))
    if hasattr(os, "posix_fallocate"):  # a full disk raises OSError here, not a crash later
        with target.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, target.stat().st_size)
    sentences = read_sentences(source, column)
    marks: list[bool] = []  # of the texts of a window, which are read before it is encoded

    def marked() -> Iterator[str]:
        for sentence in sentences:
            marks.append(is_empty(sentence))
            yield sentence

    done, empty, begin = 0, 0, time.perf_counter()
    for window in model.encode_stream(marked(), precision, normalize, total):
        if done + len(window) > total:
            break
        window[np.array(marks)] = np.nan
        array[done : done + len(window)] = window
        done, empty = done + len(window), empty + sum(marks)
        marks.clear()
    if done != total or next(sentences, None) is not None:
        raise UserError(f"{source}: expected {total} sentences, found the file changed meanwhile")
    warn_of_empty_texts(empty, done, "NaN in place of an embedding")
    array.flush()
    seconds = time.perf_counter() - begin
    return f"{total:,} x {model.width}, {total / seconds:,.0f} sentences/s"
