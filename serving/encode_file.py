"""Embeddings of the sentences of a file, written as an array window by window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from minbert.bi_encoder import BiEncoder
from minbert.device import choose_device
from multitask.assembly import open_bi_encoder
from multitask.runs import Run
from multitask.settings.config import RunConfig
from serving.model import load
from serving.prediction import is_empty, warn_of_empty_texts


def encode_file(
    model: BiEncoder,
    sentences: Sequence[str],
    target: Path,
    precision: str = "fp32",
    normalize: bool | None = None,
) -> None:
    """Write the embeddings of sentences to a .npy file, window by window.

    The rows of empty texts are NaN, and are counted in a Notice.
    """
    empty, done = np.array([*map(is_empty, sentences)]), 0
    shape = {"descr": "<f4", "fortran_order": False, "shape": (len(sentences), model.width)}
    with target.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, shape)
        for window in model.encode_stream(sentences, precision, normalize, len(sentences)):
            window[empty[done : done + len(window)]] = np.nan
            file.write(window.astype("<f4", copy=False).tobytes())
            done += len(window)
    warn_of_empty_texts(int(empty.sum()), done, "NaN in place of an embedding")


def encoder_of_run(run: Path, config: RunConfig, task: str | None = None) -> BiEncoder:
    """Return the encoder that a run has kept, or an export, with the layers of `task`.

    `config` has the device, and may have a pooling and a limit of tokens in place of the run's.
    Warn and raise RunError as `MultiTaskModel.bi_encoder_of` does.
    """
    folder = Run(run)
    if not folder.config.pretrains:
        trained = load(run, config.device, config.max_tokens)
        model = trained.bi_encoder_of(task)
        model.pooling = config.pooling or model.pooling
        return model
    folder.warn_if_unfinished()
    limit = config.max_tokens or folder.config.max_tokens
    pooling = config.pooling or folder.config.pooling
    model = open_bi_encoder(folder.weights(), replace(config, max_tokens=limit, pooling=pooling))
    return model.to(choose_device(config.device))
