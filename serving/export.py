"""Export of a run to a folder for other libraries: encoder, heads, model card."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from common.errors import SettingsError, UserError
from common.files import atomic_path, write_json
from common.settings import is_users
from minbert.checksums import EXPORTED, complete_folder
from minbert.config import transformer_config
from multitask.runs import CALIBRATION, Run
from serving.card import card, without_paths
from serving.model import MultiTaskModel, load


def export(
    run: Path, folder: Path, kind: str, overwrite: bool = False, task: str | None = None
) -> list[str]:
    """Write encoder, tokenizer, heads, configuration and model card to `folder`, atomically.

    `kind` is the library of the card's code: `sentence-transformers` or `transformers`, which both
    open the folder, or `onnx`, which also writes graphs of encoder and heads; a line is returned
    for each head that is not in them. With a `task`, which a run with branches needs, the export
    has only its head, and the encoder with its layers.
    Raise RunError, SettingsError, or UserError if the folder has other content.
    """
    folder = folder.resolve()
    content = sorted(one.name for one in folder.iterdir()) if folder.is_dir() else []
    if (content and EXPORTED not in content) or (folder.exists() and not folder.is_dir()):
        found = f"the folder has other files, such as {content[0]}" if content else "it is a file"
        raise UserError(f"{folder}: {found}; choose another --output")
    if content and not overwrite:
        raise UserError(f"{folder}: the folder holds an export; add --overwrite to replace it")
    model = load(run, "cpu")
    transformer_config(f"format {kind}", model.model.bi_encoder.encoder.config)
    if kind == "onnx":
        import_module("onnx")  # a missing package is reported before anything is written
    metrics = Run(run).metrics
    if task is not None:
        model, metrics = model.of_task(task), of_task(metrics, task)
    elif model.model.branches:
        names = ", ".join(model.tasks)
        raise SettingsError(f"task: the run has branches; choose one of its tasks: {names}")
    with atomic_path(folder, overwrite) as new:
        new.mkdir(parents=True)
        return write(model, metrics, new, kind)


def of_task(metrics: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Return the metrics of one task."""
    by_task = {key: metrics.get(key, {}) for key in ("dev", "test")}
    return {key: {task: found[task]} for key, found in by_task.items() if task in found}


def write(model: MultiTaskModel, metrics: Mapping[str, Any], folder: Path, kind: str) -> list[str]:
    """Write all files of an export into an empty folder; return a line for each missing head."""
    lines = []
    model.model.save(folder)
    write_settings(model, folder)
    complete_folder(folder, {})  # checksums, which loading compares
    if kind == "onnx":
        from serving.onnx_export import reason_without, write_heads, write_onnx

        write_onnx(model.model.bi_encoder, folder / "model.onnx")
        write_heads(model, folder / "heads.onnx")
        reasons = {name: reason_without(model, name) for name in model.tasks}
        lines = [
            f"{n}: not in heads.onnx, because its head {why}" for n, why in reasons.items() if why
        ]
    (folder / "README.md").write_text(card(model, metrics, kind), "utf-8")
    return lines


def write_settings(model: MultiTaskModel, folder: Path) -> None:
    """Write configuration and calibration, with which `load` opens the folder."""
    # The actual pooling, which the folder of only an encoder does not record.
    config = model.config.to_json() | {"pooling": model.model.bi_encoder.pooling}
    for role in ("sampling", "schedule", "combiner", "optimizer"):  # predictions need none of them
        if is_users(type(getattr(model.config, role))):
            del config[role]
    terms = [one for one in model.config.regularizers if not is_users(type(one))]
    config["regularizers"] = [one.to_json() for one in terms]
    write_json(folder / EXPORTED, without_paths(config))
    if model.temperatures:
        write_json(folder / CALIBRATION, model.temperatures)
