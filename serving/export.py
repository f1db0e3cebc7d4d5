"""Export of a run to a folder for other libraries: encoder, heads, model card."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from common.errors import SettingsError, UserError
from common.files import BRANCHES, EXPORTED, HEADS, atomic_path, with_checksum, write_json
from minbert.config import transformer_config
from minbert.folder import EMBEDDING
from multitask.calibration import write_temperatures
from multitask.config_tasks import without_paths
from multitask.run_folder import CALIBRATION, RunFolder
from serving.card import card
from serving.export_kinds import KINDS
from serving.model import MultiTaskModel
from tasks.predictions import read_scores

# File names of an export; a folder with any other file is not replaced.
OWN = (
    *("1_Pooling", "2_Normalize", "README.md", "config.json", HEADS, BRANCHES, "heads.onnx"),
    "model.onnx",
    *("model.safetensors", "modules.json", EXPORTED, EMBEDDING, "sentence_bert_config.json"),
    "config_sentence_transformers.json",
    *("tokenizer.json", "tokenizer_config.json", CALIBRATION),
)


def export(
    run: Path,
    folder: Path,
    kind: str,
    overwrite: bool = False,
    task: str | None = None,
) -> list[str]:
    """Write encoder, tokenizer, heads, configuration and model card to `folder`, atomically.

    The kinds `sentence-transformers` and `onnx` include pooling and normalisation; `onnx` adds
    `model.onnx`, from ids and mask (B, T) to embeddings (B, H), and `heads.onnx`, from these to the
    heads' scores; a line is returned for each head that is not in it.
    `task` is required for a run with branches: the export has its head and its layers. Without a
    task, the kind `minbert` has all heads and branches.
    Raise RunError, or UserError if the folder has other content.
    """
    folder = folder.resolve()
    check_target(run, folder, overwrite)
    model = MultiTaskModel.load(run, "cpu")
    transformer_config(f"format {kind}", model.model.bi_encoder.encoder.config)
    chosen = KINDS[kind]
    if chosen.package is not None:
        import_module(chosen.package)  # before the run is read
    metrics = {**(RunFolder(run).metrics() or {}), "examples": example_counts(run, model)}
    if task is not None or (model.model.branches and not chosen.keeps_branches):
        model, metrics = of_task(model, metrics, task)
    with atomic_path(folder, overwrite) as new:
        new.mkdir(parents=True)
        write(model, metrics, new, kind)
    found = {name: chosen.reason_without(model, name) for name in model.tasks}
    return [
        f"{name}: only this toolkit uses its head, which {reason}"
        for name, reason in found.items()
        if reason is not None
    ]


def example_counts(run: Path, model: MultiTaskModel) -> dict[str, dict[str, int]]:
    """Return the number of scored examples by split and task, where the run has their scores."""
    found: dict[str, dict[str, int]] = {"dev": {}, "test": {}}
    for split, counts in found.items():
        for name in model.tasks:
            if (file := RunFolder(run).scores(name, split)).exists():
                scores = read_scores(file)
                left_out = 0 if scores.selected_on is None else int(scores.selected_on.sum())
                counts[name] = len(scores.ids) - left_out
    return found


def of_task(
    model: MultiTaskModel, metrics: Mapping[str, Any], task: str | None
) -> tuple[MultiTaskModel, dict[str, Any]]:
    """Return the model of one task with its own layers, and the metrics of this task."""
    if task is None:
        names = ", ".join(model.tasks)
        raise SettingsError(
            f"task: expected the task whose layers are exported, {names}, found none"
        )
    by_task = {key: metrics[key] for key in ("dev", "test", "calibration") if key in metrics}
    only = {key: {task: found[task]} for key, found in by_task.items() if task in found}
    cut = {"cut_texts": {n: c for n, c in metrics.get("cut_texts", {}).items() if n == task}}
    return model.of_task(task), {**metrics, **only, **cut}


def check_target(run: Path, folder: Path, overwrite: bool) -> None:
    """Raise UserError if the folder has content that must not be replaced."""
    if folder.is_relative_to(run.resolve()):
        raise UserError(f"{folder}: expected a folder outside of the run {run}")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: expected a folder or nothing, found a file")
    content = sorted(one.name for one in folder.iterdir()) if folder.exists() else []
    foreign = [name for name in content if name not in OWN]
    if foreign or (content and EXPORTED not in content):
        found = (foreign or content)[0]
        raise UserError(f"{folder}: expected a new folder or only an export, found {found}")
    if content and not overwrite:
        raise UserError(f"{folder}: found an export; --overwrite would replace it")


def write(model: MultiTaskModel, metrics: Mapping[str, Any], folder: Path, kind: str) -> None:
    """Write all files of the export into an empty folder."""
    KINDS[kind].write(model, folder)
    write_settings(model, folder)
    (folder / "README.md").write_text(card(model, metrics, kind), "utf-8")


def write_settings(model: MultiTaskModel, folder: Path) -> None:
    """Write configuration and calibration, with which `MultiTaskModel.load` opens the folder."""
    # The actual pooling, which the folder of only an encoder does not record.
    config = model.config.to_json() | {"pooling": model.model.bi_encoder.pooling}
    write_json(folder / EXPORTED, with_checksum(without_paths(config)))
    if model.temperatures:
        write_temperatures(folder, model.temperatures)


def packed(model: MultiTaskModel) -> dict[str, bytes]:
    """Return the files of a model by name, for pickling."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model.model.save(folder)
        write_settings(model, folder)
        files = [file for file in folder.rglob("*") if file.is_file()]
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def unpacked(files: dict[str, bytes]) -> MultiTaskModel:
    """Return the model that `packed` returned as bytes, on the best device of this machine."""
    with tempfile.TemporaryDirectory() as place:
        for name, content in files.items():
            file = Path(place) / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
        return MultiTaskModel.load(place)
