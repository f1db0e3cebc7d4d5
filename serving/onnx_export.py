"""ONNX graphs of a run: from tokens to embeddings, and from these to the scores of the heads."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.errors import UserError
from minbert.bi_encoder import BiEncoder
from minbert.folder import save_encoder
from serving.model import MultiTaskModel
from tasks.base import Task

OUTPUTS = ["embeddings", "pooled"]  # the second ones are never normalised
INPUTS = ["input_ids", "attention_mask"]


class PooledModel(nn.Module):
    """A model of transformers, followed by the run's pooling and normalisation."""

    def __init__(self, model: nn.Module, pooling: str, normalize: bool) -> None:
        super().__init__()
        self.model, self.pooling, self.normalize = model, pooling, normalize

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask)[0]  # (B, T, H)
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)  # (B, T, 1)
        if self.pooling == "cls":
            pooled = hidden[:, 0]
        elif self.pooling == "max":
            pooled = hidden.masked_fill(mask == 0, torch.finfo(hidden.dtype).min).amax(1)
        elif self.pooling == "mean":
            pooled = (hidden * mask).sum(1) / mask.sum(1)
        else:
            raise UserError(f"pooling {self.pooling}: it is not written for ONNX")
        return F.normalize(pooled) if self.normalize else pooled.clone(), pooled


class ExportedHeads(nn.Module):
    """The heads that read embeddings (B, H) of single texts, or of both texts of pairs."""

    def __init__(self, model: MultiTaskModel, names: Sequence[str]) -> None:
        super().__init__()
        self.tasks = [model.tasks_by_name[name] for name in names]
        self.heads = nn.ModuleList(model.model.heads[name] for name in names)

    def forward(self, *texts: Tensor) -> tuple[Tensor, ...]:
        return tuple(
            shown_scores(task, task.scores(head, texts[: task.texts]))
            for task, head in zip(self.tasks, self.heads, strict=True)
        )


def reason_without(model: MultiTaskModel, name: str) -> str | None:
    """Return why a head does not read the embeddings of single texts; None if it does."""
    if model.model.pooling_of(name) is not None:
        return "pools the tokens itself"
    if model.tasks_by_name[name].joint:
        return "reads both texts of a pair as one sequence"
    return None


def shown_scores(task: Task, scores: Tensor) -> Tensor:
    """Return scores in the units of the task's files: probabilities, or numbers on their scale."""
    if task.kind.columns is not None or task.output is None:
        return scores
    zero, one = (float(task.output.show(np.float32(value))) for value in (0.0, 1.0))
    return scores if (zero, one) == (0.0, 1.0) else scores * (one - zero) + zero


def write_onnx(model: BiEncoder, file: Path) -> None:
    """Write the ONNX graph, in which the sizes of batch and sequence are dynamic."""
    from transformers import AutoModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as place:
        save_encoder(model.encoder, Path(place))
        loaded: Any = AutoModel.from_pretrained(
            place, attn_implementation="eager", add_pooling_layer=False
        )
    padded = PooledModel(loaded.eval(), model.pooling, model.normalize).eval()
    ids = torch.ones(2, 8, dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    free = {name: {0: "batch", 1: "tokens"} for name in INPUTS}
    write_graph(padded, {"input_ids": ids, "attention_mask": mask}, OUTPUTS, free, file)


def write_heads(model: MultiTaskModel, file: Path) -> None:
    """Write an ONNX graph from `pooled` embeddings to the scores of the heads that read them.

    Its inputs are `first` (B, H), and `second` (B, H) if a task has pairs; its outputs are
    `TASK.probabilities` (B, C), or `TASK.values` (B,) in the units of the task's files.
    """
    names = [name for name in model.tasks if reason_without(model, name) is None]
    if not names:
        return
    tasks = [model.tasks_by_name[name] for name in names]
    count, width = max(task.texts for task in tasks), model.model.bi_encoder.width
    inputs = {name: torch.randn(2, width) for name in ("first", "second")[:count]}
    outputs = [
        f"{task.name}.{'values' if task.kind.columns is None else 'probabilities'}"
        for task in tasks
    ]
    free = {name: {0: "batch"} for name in inputs}
    write_graph(ExportedHeads(model, names).eval(), inputs, outputs, free, file)


def write_graph(
    module: nn.Module,
    inputs: Mapping[str, Tensor],
    outputs: Sequence[str],
    free: Mapping[str, Mapping[int, str]],
    file: Path,
) -> None:
    """Write an ONNX graph; `free` are the dynamic sizes of inputs. Outputs have one, the batch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer warns of branches on shapes
        torch.onnx.export(
            module,
            tuple(inputs.values()),
            str(file),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={**free, **{name: {0: "batch"} for name in outputs}},
            opset_version=17,
            dynamo=False,
        )
