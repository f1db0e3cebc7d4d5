"""Embedding a file of sentences into an array on disk, window by window."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from common.errors import UserError
from minbert.sources import find_folder
from multitask.config import RunConfig
from multitask.methods import UserMethods


@dataclass(frozen=True)
class EncoderOfRun:
    """A trained run whose encoder is used, and the task with the adapter, if any."""

    folder: Path
    task: str | None = None
    use: UserMethods = ()


def encode_file(
    config: RunConfig,
    source: Path,
    column: str | None,
    total: int,
    target: Path,
    normalize: bool | None = None,
    compiled: bool = False,
    verbose: bool = False,
    run: EncoderOfRun | None = None,
    width: int | None = None,
    layers: int | None = None,
) -> str:
    """Write the embeddings of `total` sentences to `target`; return a line with the speed.

    The encoder is that of `config`, or of a `run`, cut to `width` dimensions and `layers` layers.
    The rows of empty texts are NaN.
    """
    import numpy as np

    from serving.empty_texts import encode_stream
    from tasks.tables import read_sentences

    with ThreadPoolExecutor(1) as meanwhile:
        if run is None:  # check the weights' hash while PyTorch is imported
            meanwhile.submit(find_folder, config.encoder)
        from minbert.adapters import AdaptedEncoder
        from minbert.bi_encoder import BiEncoder
        from minbert.device import choose_device, warn_if_slow
        from minbert.kernel_choice import choose_linear
        from serving.run_encoder import encoder_of_run, report_precision

    device = choose_device(config.device)
    warn_if_slow(config.precision, device)
    choice = choose_linear(config.linear)
    if verbose:
        print(f"linear layers on a CPU: {choice.kernel} ({choice.reason})")
    if run is None:
        model = BiEncoder.from_pretrained(
            config.encoder, config.pooling, choice.kernel, config.max_tokens, config.long
        )
        model.to(device)
    else:
        model = encoder_of_run(run.folder, config, run.task, run.use)
    precision = model.choose_precision(config.precision)
    model = model.smaller(width, layers)
    if compiled:
        if isinstance(model.encoder, AdaptedEncoder):
            expected = "expected an encoder without an adapter; --mode export --task merges it"
            raise UserError(f"--compile: {expected}")
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
    for window in encode_stream(model, sentences, precision.precision, normalize, total):
        if done + len(window) > total:
            break
        array[done : done + len(window)] = window
        done += len(window)
    if done != total or next(sentences, None) is not None:
        raise UserError(f"{source}: expected {total} sentences, found the file changed meanwhile")
    array.flush()
    seconds = time.perf_counter() - begin
    report_precision(config.precision, precision)
    return f"{total:,} x {model.width}, {total / seconds:,.0f} sentences/s"
