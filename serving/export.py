"""A run as a folder that other libraries open, with its heads, its card and all it needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minbert.errors import UserError
from minbert.json_files import read_json, write_json
from minbert.stored import save_encoder
from multitask.errors import RunError
from multitask.sealed import SUMS, publish
from serving.card import card
from serving.model import EXPORTED, MultiTaskModel

FORMATS = ("sentence-transformers", "transformers", "onnx")


def export(run: Path, folder: Path, kind: str, overwrite: bool = False) -> None:
    """Write `folder`, whole or not at all: encoder, tokenizer, heads, configuration, card.

    `sentence-transformers` and `onnx` have pooling and normalisation, too; `onnx` adds
    `model.onnx`, from ids and mask (B, T) to embeddings (B, H). Raises RunError, or UserError where
    the folder holds something else.
    """
    if folder.resolve().is_relative_to(run.resolve()):
        raise UserError(f"{folder}: expected a folder outside of the run {run}")
    if folder.exists() and any(folder.iterdir()):
        if not (folder / EXPORTED).exists():
            raise UserError(f"{folder}: expected a new folder or an export, found other files")
        if not overwrite:
            raise UserError(f"{folder}: found an export; --overwrite would replace it")
    model = MultiTaskModel.load(run, "cpu")
    if kind == "onnx":
        from serving.onnx_file import check_exportable

        check_exportable(model.model.bi_encoder)
    metrics = read_json(run / "metrics.json", RunError) if (run / "metrics.json").exists() else {}
    publish(folder, lambda target: write(model, metrics, target, kind))
    (folder / SUMS).unlink(missing_ok=True)  # others add files of their own


def write(model: MultiTaskModel, metrics: Mapping[str, Any], folder: Path, kind: str) -> None:
    """Fill an empty folder."""
    if kind == "transformers":
        save_encoder(model.model.bi_encoder.encoder, folder)
        model.model.bi_encoder.tokenizer.save(folder)
        model.model.save_heads(folder)
    else:
        model.model.save(folder)
    # As it is: an encoder's plain folder does not tell its pooling.
    config = model.config.to_json() | {"pooling": model.model.bi_encoder.pooling}
    write_json(folder / EXPORTED, public(config))
    (folder / "README.md").write_text(card(model, metrics, kind), "utf-8")
    if kind == "onnx":
        from serving.onnx_file import write_onnx

        write_onnx(model.model.bi_encoder, folder / "model.onnx")


def public(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration without places on this machine: names of files and folders alone."""
    places = {key: Path(config[key]).name for key in ("data", "init") if config[key]}
    if Path(config["encoder"]).is_absolute():
        places["encoder"] = Path(config["encoder"]).name
    own = {
        name: one | {key: one[key] and Path(one[key]).name for key in ("train", "dev", "test")}
        for name, one in config["own_tasks"].items()
    }
    return config | places | {"own_tasks": own}
