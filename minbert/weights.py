"""Conversion between Hugging Face checkpoints and our parameters, by one table of names."""

from __future__ import annotations

import argparse
import json
import pickle
import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy._core.multiarray import _reconstruct
from safetensors import SafetensorError
from torch import Tensor

from common.errors import EncoderError, UserError
from common.files import atomic_path
from minbert.config import EncoderConfig
from minbert.encoder import Encoder

# Our name -> checkpoint names. Several checkpoint tensors are stacked along the first axis, for one
# matrix product of query, key and value. BERT and RoBERTa share these names.
EMBEDDING_NAMES = {
    "embeddings.word.weight": ("embeddings.word_embeddings.weight",),
    "embeddings.position.weight": ("embeddings.position_embeddings.weight",),
    "embeddings.token_type.weight": ("embeddings.token_type_embeddings.weight",),
    "embeddings.norm.weight": ("embeddings.LayerNorm.weight",),
    "embeddings.norm.bias": ("embeddings.LayerNorm.bias",),
}
LAYER_NAMES = {
    "attention.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention.output": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "up": ("intermediate.dense",),
    "down": ("output.dense",),
    "output_norm": ("output.LayerNorm",),
}
WORDS = EMBEDDING_NAMES["embeddings.word.weight"][0]
# Names of old checkpoints, and of the BERT of Stanford's course CS224N.
OTHER_NAMES = {
    "LayerNorm.gamma": "LayerNorm.weight",
    "LayerNorm.beta": "LayerNorm.bias",
    "word_embedding.": "embeddings.word_embeddings.",
    "pos_embedding.": "embeddings.position_embeddings.",
    "tk_type_embedding.": "embeddings.token_type_embeddings.",
    "embed_layer_norm.": "embeddings.LayerNorm.",
    "bert_layers.": "encoder.layer.",
    "self_attention.": "attention.self.",
    "attention_dense.": "attention.output.dense.",
    "attention_layer_norm.": "attention.output.LayerNorm.",
    "interm_dense.": "intermediate.dense.",
    "out_dense.": "output.dense.",
    "out_layer_norm.": "output.LayerNorm.",
}
# What trainers pickle beside the weights: settings, and the states of random generators.
PLAIN: list[Any] = [
    *(argparse.Namespace, SimpleNamespace, np.ndarray, np.dtype, np.dtypes.UInt32DType),
    *((_reconstruct, f"numpy.{core}.multiarray._reconstruct") for core in ("core", "_core")),
]


def save_tensors(
    tensors: Mapping[str, Tensor], file: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors (contiguous, on the CPU) atomically; raise OSError if the disk is full."""
    with atomic_path(file) as new:  # the library's `save_file` gives access only to the owner
        new.write_bytes(safetensors.torch.save(dict(tensors), metadata))


def read_tensors(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file; raise `error_class` if it is damaged or missing."""
    try:
        return safetensors.torch.load_file(file)
    except (SafetensorError, OSError) as error:
        raise error_class(f"{file}: the weights cannot be read: {error}") from error


def check_weights(
    tensors: Mapping[str, Tensor], file: Path, error_class: type[UserError] = EncoderError
) -> None:
    """Raise `error_class` for a weight that is not floating-point, or not finite in float32."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            found = str(tensor.dtype).removeprefix("torch.")
            raise error_class(f"{file}: {name!r}: expected floating-point numbers, found {found}")
        if tensor.numel():
            # aminmax returns NaN if there is one: a single pass, without a mask of the same size.
            for number in map(float, tensor.detach().float().aminmax()):
                if not isfinite(number):
                    raise error_class(f"{file}: {name!r}: expected finite numbers, found {number}")


def name_table(config: EncoderConfig) -> dict[str, tuple[str, ...]]:
    """Map our parameter names to the checkpoint names of their parts."""
    table: dict[str, tuple[str, ...]] = {**EMBEDDING_NAMES}
    for layer in range(config.num_layers):
        for ours, theirs in LAYER_NAMES.items():
            for kind in ("weight", "bias"):
                table[f"layers.{layer}.{ours}.{kind}"] = tuple(
                    f"encoder.layer.{layer}.{name}.{kind}" for name in theirs
                )
    return table


def read_checkpoint(folder: Path) -> tuple[Path, dict[str, Tensor]]:
    """Read `model.safetensors` (also sharded) or `pytorch_model.bin`; return path and tensors."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    pickled = folder / "pytorch_model.bin"
    if single.exists():
        return single, read_tensors(single)
    if index.exists():
        try:
            shards = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        except (ValueError, KeyError, TypeError) as error:
            raise EncoderError(f"{index}: the weights cannot be read: {error}") from error
        several = [read_tensors(folder / Path(shard).name) for shard in shards]
        return index, {name: one for tensors in several for name, one in tensors.items()}
    if pickled.exists():
        return pickled, read_pickled(pickled)
    raise EncoderError(f"{folder}: the folder needs model.safetensors or pytorch_model.bin")


def read_pickled(file: Path) -> dict[str, Tensor]:
    """Read the tensors of a file of `torch.save`, also those that a trainer keeps with its state.

    Raise EncoderError for content other than tensors. No code in the file is run.
    """
    try:
        with torch.serialization.safe_globals(PLAIN):
            content: Any = torch.load(file, "cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # weights_only refuses a pickle that would run code
        raise EncoderError(
            f"{file}: expected only tensors, found a pickle that is damaged or would run code; "
            "no code was run"
        ) from error
    except Exception as error:  # a damaged file raises many different classes
        raise EncoderError(f"{file}: the weights cannot be read: {error!r}") from error
    for key in ("state_dict", "model", "model_state_dict"):
        content = content.get(key, content) if isinstance(content, dict) else None
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(one, Tensor) for name, one in content.items()
    ):
        raise EncoderError(f"{file}: expected a dict of tensors, found other content")
    return content


def from_checkpoint(
    tensors: Mapping[str, Tensor], config: EncoderConfig, source: Path
) -> tuple[dict[str, Tensor], list[str]]:
    """Convert checkpoint tensors to (our state dict in float32, names of the tensors left out).

    The encoder may be a part of another model, whose other parts are left out. Raises EncoderError
    with the name of a tensor that is missing, unexpected, of the wrong shape, not floating-point or
    not finite.
    """
    names = {original: bert_name(original) for original in tensors}
    prefixes = [one.removesuffix(WORDS) for one in names.values() if one.endswith(WORDS)]
    if len(prefixes) != 1:
        found = f"found {len(prefixes) or 'none'}"
        raise EncoderError(f"{source}: expected one encoder with a tensor {WORDS!r}, {found}")
    own = re.compile(rf"{re.escape(prefixes[0])}((embeddings|encoder)\..*)")
    weights = {one: name for one, name in names.items() if not name.endswith("_ids")}
    matches = {one: own.fullmatch(name) for one, name in weights.items()}
    theirs = {match[1]: tensors[one] for one, match in matches.items() if match}
    with torch.device("meta"):
        shapes = {name: value.shape for name, value in Encoder(config).state_dict().items()}
    table = name_table(config)
    expected = {
        part: (shapes[name][0] // len(parts), *shapes[name][1:])
        for name, parts in table.items()
        for part in parts
    }
    check_shapes(theirs, expected, source)
    check_weights(theirs, source)
    # `cat` copies even a single tensor; the loaded one may be a view of the mapped file.
    ours = {
        name: torch.cat([theirs[one] for one in parts]).float() for name, parts in table.items()
    }
    return ours, [one for one, match in matches.items() if not match]


def bert_name(name: str) -> str:
    """Return the name of a tensor in BERT's newer checkpoints."""
    for other, ours in OTHER_NAMES.items():
        name = name.replace(other, ours)
    return name


def check_shapes(
    tensors: Mapping[str, Tensor], expected: Mapping[str, tuple[int, ...]], source: Path
) -> None:
    """Raise EncoderError for a tensor that is missing, of another shape, or not expected."""
    for name, shape in expected.items():
        if name not in tensors:
            raise EncoderError(f"{source}: the tensor {name!r} is missing")
        if (found := tuple(tensors[name].shape)) != shape:
            raise EncoderError(f"{source}: {name!r}: expected shape {shape}, found {found}")
    if others := [name for name in tensors if name not in expected]:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise EncoderError(
            f"{source}: found a tensor that this encoder does not have: {others[0]!r} "
            f"{tuple(tensors[others[0]].shape)}{more}"
        )


def to_checkpoint(encoder: Encoder) -> dict[str, Tensor]:
    """Return our parameters under Hugging Face's names, contiguous, on the CPU."""
    state = encoder.state_dict()
    return {
        part: chunk.detach().cpu().clone().contiguous()
        for ours, theirs in name_table(encoder.config).items()
        for part, chunk in zip(theirs, state[ours].chunk(len(theirs)), strict=True)
    }


def load_transformer(folder: Path, config: EncoderConfig) -> tuple[Encoder, list[str]]:
    """Return an encoder with the weights of `folder`, and the names of tensors left out."""
    source, tensors = read_checkpoint(folder)
    state, left_out = from_checkpoint(tensors, config, source)
    with torch.device("meta"):  # skips the initialisation, which would be overwritten
        encoder = Encoder(config)
    encoder.load_state_dict(state, assign=True)
    return encoder.requires_grad_(True), left_out
