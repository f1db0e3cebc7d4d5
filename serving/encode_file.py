"""Embedding a file of sentences into an array on disk, window by window."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import numpy as np

from common.errors import UserError
from minbert.bi_encoder import BiEncoder
from serving.empty_texts import encode_stream
from tasks.tables import read_sentences


def compile_layers(model: BiEncoder) -> None:
    """Compile the layers of an encoder; raise UserError without a compiler."""
    compiler = (os.environ.get("CXX") or "g++").split()[0]  # CXX may contain flags
    if model.device.type == "cpu" and shutil.which(compiler) is None:
        raise UserError("--compile: expected a C++ compiler such as g++, found none")
    model.encoder.compile_layers()


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

    The rows of empty texts are NaN. Raise UserError if the file has another number of sentences.
    """
    array = np.lib.format.open_memmap(target, "w+", np.float32, (total, model.width))
    if hasattr(os, "posix_fallocate"):  # a full disk raises OSError here, not a crash later
        with target.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, target.stat().st_size)
    sentences = read_sentences(source, column)
    done, begin = 0, time.perf_counter()
    for window in encode_stream(model, sentences, precision, normalize, total):
        if done + len(window) > total:
            break
        array[done : done + len(window)] = window
        done += len(window)
    if done != total or next(sentences, None) is not None:
        raise UserError(f"{source}: expected {total} sentences, found the file changed meanwhile")
    array.flush()
    seconds = time.perf_counter() - begin
    return f"{total:,} x {model.width}, {total / seconds:,.0f} sentences/s"
