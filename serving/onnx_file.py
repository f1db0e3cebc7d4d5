"""An encoder as an ONNX file: ids and mask (B, T) -> sentence embeddings (B, H), in float32.

The graph is traced from the same weights in transformers' own padded form, which runtimes know.
"""

from __future__ import annotations

import tempfile
import warnings
from importlib import util
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.errors import UserError
from minbert.bi_encoder import BiEncoder
from minbert.stored import save_encoder

INPUTS = ["input_ids", "attention_mask"]


class Padded(nn.Module):
    """transformers' model with our pooling and normalisation."""

    def __init__(self, model: nn.Module, pooling: str, normalize: bool) -> None:
        super().__init__()
        self.model, self.pooling, self.normalize = model, pooling, normalize

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask)[0]  # (B, T, H)
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)  # (B, T, 1)
        if self.pooling == "cls":
            pooled = hidden[:, 0]
        elif self.pooling == "max":
            pooled = hidden.masked_fill(mask == 0, torch.finfo(hidden.dtype).min).amax(1)
        else:
            pooled = (hidden * mask).sum(1) / mask.sum(1)
        return F.normalize(pooled) if self.normalize else pooled


def check_exportable() -> None:
    """UserError where there is nothing to trace it with."""
    if util.find_spec("onnx") is None:
        raise UserError(
            "--format onnx: expected the package onnx, found none: "
            "pip install -r requirements-extras.txt"
        )


def write_onnx(model: BiEncoder, file: Path) -> None:
    """Write the file; batch and length are free."""
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as place:
        save_encoder(model.encoder, Path(place))
        loaded: Any = AutoModel.from_pretrained(
            place, attn_implementation="eager", add_pooling_layer=False
        )
    padded = Padded(loaded.eval(), model.pooling, model.normalize).eval()
    ids = torch.ones(2, 8, dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    free = {name: {0: "batch", 1: "tokens"} for name in INPUTS} | {"embeddings": {0: "batch"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tracer, about branches on shapes
        torch.onnx.export(
            padded,
            (ids, mask),
            str(file),
            input_names=INPUTS,
            output_names=["embeddings"],
            dynamic_axes=free,
            opset_version=17,
            dynamo=False,
        )
