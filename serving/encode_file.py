"""Embedding a file of sentences into an array on disk, window by window."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common.errors import UserError
from minbert.sources import find_folder
from multitask.config import RunConfig


def encode_file(
    config: RunConfig,
    source: Path,
    column: str | None,
    total: int,
    target: Path,
    normalize: bool | None = None,
    compiled: bool = False,
    verbose: bool = False,
) -> str:
    """Write the embeddings of `total` sentences to `target`; return a line with the speed."""
    import numpy as np

    from tasks.tables import read_sentences

    with ThreadPoolExecutor(1) as meanwhile:
        # Check the weights' hash while PyTorch is imported.
        meanwhile.submit(find_folder, config.encoder)
        from minbert.bi_encoder import BiEncoder
        from minbert.linear import choose_device, choose_linear, warn_if_slow

    device = choose_device(config.device)
    warn_if_slow(config.precision, device)
    choice = choose_linear(config.linear)
    if verbose:
        print(f"linear layers on a CPU: {choice.kernel} ({choice.reason})")
    model = BiEncoder.from_pretrained(config.encoder, config.pooling, choice.kernel)
    model.to(device)
    if compiled:
        compiler = (os.environ.get("CXX") or "g++").split()[0]  # CXX may contain flags
        if device.type == "cpu" and shutil.which(compiler) is None:
            raise UserError("--compile: expected a C++ compiler such as g++, found none")
        model.encoder.compile_layers()
    array = np.lib.format.open_memmap(target, "w+", np.float32, (total, model.width))
    if hasattr(os, "posix_fallocate"):  # a full disk raises OSError here, not a crash later
        with target.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, target.stat().st_size)
    sentences = read_sentences(source, column)
    done, begin = 0, time.perf_counter()
    for window in model.encode_stream(sentences, config.precision, normalize, total):
        if done + len(window) > total:
            break
        array[done : done + len(window)] = window
        done += len(window)
    if done != total or next(sentences, None) is not None:
        raise UserError(f"{source}: expected {total} sentences, found the file changed meanwhile")
    array.flush()
    seconds = time.perf_counter() - begin
    return f"{total:,} x {model.width}, {total / seconds:,.0f} sentences/s"
