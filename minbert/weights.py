"""Conversion between Hugging Face checkpoints and our parameters, by one table of names."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
from collections import Counter
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from common.errors import EncoderError, UserError
from common.files import atomic_path, check_regular
from minbert.config import EncoderConfig
from minbert.encoder import Encoder

OS_ERROR = re.compile(r"os error (\d+)")  # how the library reports a full disk


def save_tensors(
    tensors: Mapping[str, Tensor], file: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors (contiguous, on the CPU) atomically.

    The file has the usual permissions of a new file; safetensors gives access only to the owner.
    Raises OSError if the disk is full.
    """
    with atomic_path(file) as new:
        new.touch()
        mode = new.stat().st_mode
        try:
            save_file(dict(tensors), new, metadata)
        except SafetensorError as error:
            number = OS_ERROR.search(str(error))
            code = int(number[1]) if number else errno.EIO
            reason = os.strerror(code) if number else str(error)
            raise OSError(code, reason, str(new)) from error
        new.chmod(mode & 0o777)


def read_tensors(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file.

    Raises `error_class` if the file is damaged or missing, or has a name twice. The library itself
    returns the last of two tensors with the same name.
    """
    check_regular(file, error_class)
    try:
        tensors = load_file(file)
        with file.open("rb") as opened:
            size = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(size), object_pairs_hook=list)
    except (SafetensorError, OSError) as error:
        raise error_class(f"{file}: the weights cannot be read: {error}") from error
    name, times = Counter(name for name, _ in header).most_common(1)[0] if header else ("", 0)
    if times > 1:
        raise error_class(f"{file}: {name!r}: expected one tensor of this name, found {times}")
    return tensors


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
            for number in map(float, tensor.float().aminmax()):
                if not isfinite(number):
                    raise error_class(f"{file}: {name!r}: expected finite numbers, found {number}")


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
PREFIX = re.compile(r"^(bert|roberta)\.")
KNOWN_EXTRAS = re.compile(r"^(pooler\.|cls\.|lm_head\.|embeddings\.position_ids$)")
# Errors caused by malformed content.
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
OLD_NAMES = (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))


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
    for file in (single, index, pickled):
        check_regular(file, EncoderError)
    try:
        if single.exists():
            return single, read_tensors(single)
        if index.exists():
            shards = sorted(set(json.loads(index.read_text())["weight_map"].values()))
            return index, joined([folder / Path(shard).name for shard in shards])
        if pickled.exists():
            # weights_only refuses a pickle that would run code.
            return pickled, tensors_of(torch.load(pickled, "cpu", weights_only=True), pickled)
    except EncoderError:
        raise
    except pickle.UnpicklingError as error:
        raise EncoderError(
            f"{pickled}: expected only tensors, found a pickle that is damaged or would run code; "
            "no code was run"
        ) from error
    except (RuntimeError, OSError, EOFError, *MALFORMED) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise EncoderError(f"{folder}: the weights cannot be read: {reason}") from error
    raise EncoderError(f"{folder}: expected model.safetensors or pytorch_model.bin, found neither")


def joined(shards: list[Path]) -> dict[str, Tensor]:
    """Join the tensors of all shards; raise EncoderError for a name in two shards."""
    tensors: dict[str, Tensor] = {}
    for shard in shards:
        for name, tensor in read_tensors(shard).items():
            if name in tensors:
                raise EncoderError(f"{shard}: {name!r}: expected in one shard, found in two")
            tensors[name] = tensor
    return tensors


def tensors_of(content: Any, file: Path) -> dict[str, Tensor]:
    """Return a pickled checkpoint's dense tensors by name; raise EncoderError for other content."""
    if not isinstance(content, dict):
        found = type(content).__name__
        raise EncoderError(f"{file}: expected a dict of tensors, found a {found}")
    for name, value in content.items():
        if not isinstance(name, str):
            raise EncoderError(f"{file}: expected names of tensors, found the key {name!r}")
        if not isinstance(value, Tensor):
            found = type(value).__name__
            raise EncoderError(f"{file}: expected tensors only, found {name!r}, a {found}")
        if kind := non_dense_kind(value):
            raise EncoderError(f"{file}: {name!r}: expected a dense tensor, found {kind}")
    return content


def non_dense_kind(tensor: Tensor) -> str | None:
    """Return the kind of a tensor that is not dense; None for a dense tensor."""
    if tensor.is_meta:
        return "one without values (meta)"
    if tensor.is_nested or tensor.is_quantized:
        return "a nested one" if tensor.is_nested else "a quantized one"
    return None if tensor.layout == torch.strided else f"a sparse one ({tensor.layout})"


def from_checkpoint(
    tensors: Mapping[str, Tensor], config: EncoderConfig, source: Path
) -> tuple[dict[str, Tensor], list[str]]:
    """Convert checkpoint tensors to (our state dict in float32, names of ignored known extras).

    Supports the prefixes `bert.` and `roberta.` and the old names gamma and beta. Raises
    EncoderError with the name of a tensor that is missing, unexpected, duplicate, of the wrong
    shape, not floating-point or not finite.
    """
    theirs: dict[str, Tensor] = {}
    originals: dict[str, str] = {}
    extras = []
    for original, tensor in tensors.items():
        name = PREFIX.sub("", original)
        for old, new in OLD_NAMES:
            name = name.replace(old, new)
        if KNOWN_EXTRAS.match(name):
            extras.append(original)
        elif name in theirs:
            raise EncoderError(
                f"{source}: {name!r}: expected one tensor, found {originals[name]!r} and "
                f"{original!r}"
            )
        else:
            theirs[name], originals[name] = tensor, original
    with torch.device("meta"):
        shapes = {name: value.shape for name, value in Encoder(config).state_dict().items()}
    ours = {}
    table = name_table(config)
    expected = {
        part: (shapes[name][0] // len(parts), *shapes[name][1:])
        for name, parts in table.items()
        for part in parts
    }
    check_shapes(theirs, expected, source)
    check_weights(theirs, source)
    for name, parts in table.items():
        # `cat` copies even a single tensor; the loaded one may be a view of the mapped file.
        ours[name] = torch.cat([theirs[part] for part in parts]).to(torch.float32)
    return ours, extras


def check_shapes(
    tensors: Mapping[str, Tensor], expected: Mapping[str, tuple[int, ...]], source: Path
) -> None:
    """Raise EncoderError for a tensor that is missing, of another shape, or not expected."""
    for name, shape in expected.items():
        if name not in tensors:
            raise EncoderError(f"{source}: expected a tensor {name!r}, found none")
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
    """Return an encoder with the weights of `folder`, and the names of ignored tensors."""
    source, tensors = read_checkpoint(folder)
    state, extras = from_checkpoint(tensors, config, source)
    with torch.device("meta"):  # skips the initialisation, which would be overwritten
        encoder = Encoder(config)
    encoder.load_state_dict(state, assign=True)
    return encoder.requires_grad_(True), extras
