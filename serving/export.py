"""Export of a run to a folder for other libraries: encoder, heads, model card, ONNX graph."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.atomic_files import atomic_path, recover
from common.errors import RunError, UserError
from common.extras import missing
from common.hub import upload
from common.json_files import write_json
from minbert.bi_encoder import BiEncoder
from minbert.encoder import Encoder
from minbert.folder import save_encoder, write_limit
from minbert.sizes import SIZES, write_sizes
from multitask.calibration import write_calibration
from multitask.methods import UserMethods
from multitask.run_folder import CALIBRATION, EXPORTED, RunFolder
from multitask.stored_config import without_paths
from serving.card import card
from serving.card_reader import reason_without_reader
from serving.head_formulas import exported_heads, reason_without, shown_scores
from serving.model import MultiTaskModel
from serving.static_export import StaticSettings, write_static

OUTPUTS = ["embeddings", "pooled"]  # the second ones are never normalised
INPUTS = ["input_ids", "attention_mask"]
# File names of an export; a folder with any other file is not replaced.
OWN = (
    *("1_Pooling", "2_Normalize", "README.md", "config.json", "heads.safetensors", "heads.onnx"),
    "model.onnx",
    *("model.safetensors", "modules.json", EXPORTED, "sentence_bert_config.json"),
    "config_sentence_transformers.json",
    *("tokenizer.json", "tokenizer_config.json", CALIBRATION, SIZES),
)


# Kind of export -> why a head is not in its part for other libraries, or None.
LEFT_OUT: Mapping[str, Callable[[MultiTaskModel, str], str | None]] = {
    "onnx": reason_without,
    "sentence-transformers": reason_without_reader,
    "transformers": lambda model, name: None,  # it has no such part
    "static": lambda model, name: None,
}


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
        else:
            pooled = (hidden * mask).sum(1) / mask.sum(1)
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
    names = exported_heads(model)
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


def push_to_hub(
    run: Path,
    repo: str,
    kind: str = "sentence-transformers",
    private: bool = False,
    token: str | None = None,
    use: UserMethods = (),
    task: str | None = None,
    static: StaticSettings | None = None,
) -> str:
    """Upload an export of a run to `owner/name` on the Hugging Face hub; return its address.

    Raise UserError with one line, if the hub refuses or cannot be reached.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "export"
        export(run, folder, kind, use=use, repo=repo, task=task, static=static)
        return upload(folder, repo, private, token, f"Upload of {run.name}")


def export(
    run: Path,
    folder: Path,
    kind: str,
    overwrite: bool = False,
    use: UserMethods = (),
    repo: str | None = None,
    task: str | None = None,
    static: StaticSettings | None = None,
) -> list[str]:
    """Write encoder, tokenizer, heads, configuration and model card to `folder`, atomically.

    The kinds `sentence-transformers` and `onnx` include pooling and normalisation; `onnx` adds
    `model.onnx`, from ids and mask (B, T) to embeddings (B, H), and `heads.onnx`, from these to the
    heads' scores; a line is returned for each head that is not in it. A folder that a killed
    export was replacing is restored first. `repo` is the name on the hub, for the card. `task` is
    required for a run with adapters: the export has its head, and its adapter merged into the
    encoder. The kind `static` has a student of the encoder and no heads; `static` are its settings.
    Raises RunError, or UserError if the folder has other content.
    """
    folder = folder.resolve()
    check_target(run, folder, overwrite)
    model = MultiTaskModel.load(run, "cpu", use=use)
    if not isinstance(model.model.bi_encoder.encoder, Encoder):
        raise UserError(f"--format {kind}: expected a transformer, found a BiLSTM")
    if kind == "onnx" and util.find_spec("onnx") is None:
        raise UserError(f"--format onnx: {missing('onnx')}")
    metrics = RunFolder(run).read_metrics() or {}
    if task is not None or model.model.adapters:
        model, metrics = merged(model, metrics, task)
    with atomic_path(folder, overwrite) as new:
        new.mkdir(parents=True)
        if kind == "static":
            write_static(model, RunFolder(run), new, static or StaticSettings(), task, repo)
        else:
            write(model, metrics, new, kind, repo)
    reason_of = LEFT_OUT[kind]
    found = {name: reason_of(model, name) for name in model.tasks}
    return [
        f"{name}: only this toolkit uses its head, which {reason}"
        for name, reason in found.items()
        if reason is not None
    ]


def merged(
    model: MultiTaskModel, metrics: Mapping[str, Any], task: str | None
) -> tuple[MultiTaskModel, dict[str, Any]]:
    """Return the model of one task with its adapter merged, and the metrics of this task."""
    if task is None:
        names = ", ".join(model.tasks)
        raise RunError(f"--task: expected the task whose adapter is merged, {names}, found none")
    by_task = {key: metrics[key] for key in ("dev", "test", "calibration") if key in metrics}
    only = {key: {task: found[task]} for key, found in by_task.items() if task in found}
    sizes = [{**one, "dev": {task: one["dev"][task]}} for one in metrics.get("sizes", [])]
    cut = {"cut_texts": {n: c for n, c in metrics.get("cut_texts", {}).items() if n == task}}
    return model.merged(task), {**metrics, **only, **cut, "sizes": sizes}


def check_target(run: Path, folder: Path, overwrite: bool) -> None:
    """Raise UserError if the folder has content that must not be replaced."""
    if folder.is_relative_to(run.resolve()):
        raise UserError(f"{folder}: expected a folder outside of the run {run}")
    recover(folder)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: expected a folder or nothing, found a file")
    content = sorted(one.name for one in folder.iterdir()) if folder.exists() else []
    foreign = [name for name in content if name not in OWN]
    if foreign or (content and EXPORTED not in content):
        found = (foreign or content)[0]
        raise UserError(f"{folder}: expected a new folder or only an export, found {found}")
    if content and not overwrite:
        raise UserError(f"{folder}: found an export; --overwrite would replace it")


def write(
    model: MultiTaskModel, metrics: Mapping[str, Any], folder: Path, kind: str, repo: str | None
) -> None:
    """Write all files of the export into an empty folder."""
    if kind == "transformers":
        save_encoder(model.model.bi_encoder.encoder, folder)
        model.model.bi_encoder.tokenizer.save(folder)
        model.model.save_heads(folder)
        # The run's token limit, in a file that transformers does not read.
        tokenizer = model.model.bi_encoder.tokenizer
        write_limit(folder, tokenizer.max_tokens, tokenizer.lower)
        write_sizes(folder, model.model.bi_encoder.sizes)
    else:
        model.model.save(folder)
    write_settings(model, folder)
    (folder / "README.md").write_text(card(model, metrics, kind, repo), "utf-8")
    if kind == "onnx":
        write_onnx(model.model.bi_encoder, folder / "model.onnx")
        write_heads(model, folder / "heads.onnx")


def write_settings(model: MultiTaskModel, folder: Path) -> None:
    """Write configuration and calibration, with which `MultiTaskModel.load` opens the folder."""
    # The actual pooling, which the folder of an encoder alone does not record.
    config = model.config.to_json() | {"pooling": model.model.bi_encoder.pooling}
    write_json(folder / EXPORTED, without_paths(config))
    if model.calibrations:
        write_calibration(folder, model.calibrations)


class Packed(NamedTuple):
    """The files of a model by name, and the user's own methods that it was trained with."""

    files: dict[str, bytes]
    use: UserMethods


def packed(model: MultiTaskModel) -> Packed:
    """Return a model as bytes, for pickling."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model.model.save(folder)
        write_settings(model, folder)
        files = [file for file in folder.rglob("*") if file.is_file()]
        content = {str(file.relative_to(folder)): file.read_bytes() for file in files}
    return Packed(content, model.config.user_methods)


def unpacked(found: Packed) -> MultiTaskModel:
    """Return the model that `packed` returned as bytes, on the best device of this machine."""
    with tempfile.TemporaryDirectory() as place:
        for name, content in found.files.items():
            file = Path(place) / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
        return MultiTaskModel.load(place, use=found.use)
