"""The folder of an encoder: configuration, weights, pooling, normalisation and length limit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import torch

from common.errors import EncoderError
from common.files import (
    EXPORTED,
    HEADS,
    atomic_write_text,
    check_regular,
    is_run,
    read_json,
    read_json_if_any,
    write_json,
)
from minbert.bilstm import BiLSTM
from minbert.config import (
    BILSTM,
    AnyConfig,
    EncoderConfig,
    bilstm_from_json,
    config_from_transformers,
    config_to_transformers,
)
from minbert.encoder import Encoder
from minbert.pooling import FOLDER_KEYS, POOLINGS
from minbert.tokenizer import Tokenizer
from minbert.tokenizer_files import load_tokenizer
from minbert.weights import (
    check_shapes,
    check_weights,
    load_transformer,
    read_checkpoint,
    save_tensors,
    to_checkpoint,
)

EMBEDDING = "embedding.json"  # of a folder without modules of sentence-transformers
TOKENS = "token_embeddings"  # what the encoder gives the pooling
CHAIN = ("Transformer", "Pooling", "Normalize")
# sentence-transformers reads the first of these that exists, sentence_NAME_config.json.
LIMIT_FILES = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
# Settings of sentence-transformers that would change embeddings.
MODEL_SETTINGS = ("default_prompt_name", "truncate_dim")
ENCODER_SETTINGS = (
    "config_args",
    "config_kwargs",
    "tokenizer_args",
    "processor_kwargs",
    "processing_kwargs",
)


@dataclass(frozen=True)
class SentenceSettings:
    """Settings of a sentence-transformers folder, apart from the encoder's configuration."""

    pooling: str | None = None
    normalize: bool = False
    max_tokens: int | None = None
    lower: bool = False


def read_sentence_settings(folder: Path) -> SentenceSettings:
    """Read the settings of a folder; a plain transformers folder gives the defaults.

    Pooling and normalisation are modules of sentence-transformers or, in a folder without modules,
    those that `write_embedding` wrote. Raise EncoderError for settings that are not supported.
    """
    pooling, normalize = None, False
    if (folder / "modules.json").exists():
        pooling, normalize = read_modules(folder)
    elif (folder / EMBEDDING).exists():
        kept = read_json(folder / EMBEDDING)
        pooling, normalize = kept.get("pooling"), kept.get("normalize") is True
        check_pooling(folder / EMBEDDING, pooling)
    check_unused(folder / "config_sentence_transformers.json", MODEL_SETTINGS)
    return SentenceSettings(pooling, normalize, *read_limit(folder))


def read_modules(folder: Path) -> tuple[str, bool]:
    """Return the pooling, and whether embeddings are normalised, of the modules of a folder."""
    file = folder / "modules.json"
    modules = read_module_list(file)
    kinds = tuple(kind for kind, _ in modules)
    if kinds not in (CHAIN, CHAIN[:2]):
        found = ", ".join(kinds) or "none"
        raise EncoderError(f"{file}: expected Transformer, Pooling and Normalize, found {found}")
    pooling = folder / modules[1][1] / "config.json"
    return read_pooling(pooling), kinds == CHAIN


def read_limit(folder: Path) -> tuple[int | None, bool]:
    """Return the limit of tokens per text, and whether texts are lower-cased first."""
    names = (folder / f"sentence_{name}_config.json" for name in LIMIT_FILES)
    file = next((one for one in names if one.exists()), None)
    settings = {} if file is None else check_unused(file, ENCODER_SETTINGS)
    if (output := settings.get("module_output_name", TOKENS)) != TOKENS:
        raise EncoderError(f"{file}: expected module_output_name {TOKENS}, found {output!r:.60}")
    max_tokens = settings.get("max_seq_length")
    if max_tokens is None and (folder / "tokenizer_config.json").exists():
        # Since version 6, sentence-transformers keeps its limit here.
        file = folder / "tokenizer_config.json"
        max_tokens = read_json(file).get("model_max_length")
        if isinstance(max_tokens, float) and max_tokens.is_integer():  # 1e30 stands for no limit
            max_tokens = int(max_tokens)
    if not isinstance(max_tokens, int | None) or (max_tokens is not None and max_tokens < 3):
        line = f"expected a length limit of at least 3 tokens, found {max_tokens!r}"
        raise EncoderError(f"{file}: {line}")
    return max_tokens, bool(settings.get("do_lower_case", False))


def check_unused(file: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return the content of a file, empty without one; EncoderError for a setting of `names`."""
    content = read_json_if_any(file)
    for name in names:
        if content.get(name):
            line = f"expected no {name}, found {content[name]!r:.60}: it is not supported"
            raise EncoderError(f"{file}: {line}")
    return content


def read_module_list(file: Path) -> list[tuple[str, str]]:
    """Return (kind, folder) of each module of a sentence-transformers model, in order."""
    check_regular(file, EncoderError)
    try:
        modules = json.loads(file.read_text("utf-8"))
        found = [(str(m["type"]).rsplit(".", 1)[-1], str(m["path"])) for m in modules]
        for _, path in found:
            if Path(path).is_absolute() or ".." in Path(path).parts:
                raise ValueError(f"a path that leaves the folder, {path!r}")
        return found
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise EncoderError(
            f"{file}: expected a list of modules, each with type and path, found: {error}"
        ) from error


def read_pooling(file: Path) -> str:
    """Return the pooling: old files have one flag for each, new ones a name."""
    settings, names = read_json(file), {key: name for name, key in FOLDER_KEYS.items()}
    flags = [key for key, on in settings.items() if key.startswith("pooling_mode_") and on]
    found = settings.get("pooling_mode") or "+".join(str(names.get(key, key)) for key in flags)
    check_pooling(file, found)
    return found


def check_pooling(file: Path, found: object) -> None:
    """Raise EncoderError for a pooling that is none."""
    if not isinstance(found, str) or found not in POOLINGS:
        raise EncoderError(f"{file}: expected pooling {', '.join(POOLINGS)}, found {found!r}")


def write_sentence_settings(folder: Path, settings: SentenceSettings, width: int) -> None:
    """Write the files that `read_sentence_settings` and sentence-transformers read."""
    modules = {"Transformer": "", "Pooling": "1_Pooling"}
    modules |= {"Normalize": "2_Normalize"} if settings.normalize else {}
    found = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(modules.items())
    ]
    atomic_write_text(folder / "modules.json", json.dumps(found, indent=2))
    flags = {key: name == settings.pooling for name, key in FOLDER_KEYS.items()}
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width} | flags)
    write_limit(folder, settings)


def write_limit(folder: Path, settings: SentenceSettings) -> None:
    """Write the limit of tokens per text, and whether texts are lower-cased first."""
    limit = {"max_seq_length": settings.max_tokens, "do_lower_case": settings.lower}
    write_json(folder / "sentence_bert_config.json", limit)


def write_embedding(folder: Path, settings: SentenceSettings) -> None:
    """Write pooling and normalisation for a folder without modules of sentence-transformers."""
    embedding = {"pooling": settings.pooling, "normalize": settings.normalize}
    write_json(folder / EMBEDDING, embedding)


AnyEncoder = Encoder | BiLSTM


def read_config(folder: Path) -> AnyConfig:
    """Read the encoder's configuration; raise EncoderError that names the file and the fault."""
    file = folder / "config.json"
    content = read_json(file)
    if is_run(content):
        line = f"expected an encoder, found a run; its encoder is in {folder / 'best'}"
        raise EncoderError(f"{folder}: {line}, and --init {folder} starts from it")
    try:
        if content.get("model_type") == BILSTM:
            return bilstm_from_json(content)
        return config_from_transformers(content)
    except EncoderError as error:
        raise EncoderError(f"{file}: {error}") from error


def tokenizer_of(
    folder: Path,
    config: AnyConfig,
    settings: SentenceSettings,
    max_tokens: int | None,
    name: str | Path,
) -> Tokenizer:
    """Return the tokenizer of a folder, with its limit or `max_tokens`; raise EncoderError."""
    limit = min(settings.max_tokens or config.max_tokens, config.max_tokens)
    if max_tokens is not None:
        limit = max_tokens
        if not isinstance(max_tokens, Integral) or not 3 <= max_tokens <= config.max_tokens:
            raise EncoderError(
                f"max_tokens: expected a whole number from 3 to {config.max_tokens}, the longest "
                f"text of {name}, found {max_tokens!r:.40}"
            )
    tokenizer = load_tokenizer(folder, config.family, limit, settings.lower)
    if tokenizer.vocab_size > config.vocab_size:
        raise EncoderError(
            f"{folder}: expected at most {config.vocab_size} tokens (config.json), "
            f"found a tokenizer with {tokenizer.vocab_size}"
        )
    return tokenizer


def load_encoder(folder: Path, config: AnyConfig) -> tuple[Encoder | BiLSTM, list[str]]:
    """Return an encoder with the weights of `folder`, and the names of ignored tensors."""
    if isinstance(config, EncoderConfig):
        return load_transformer(folder, config)
    source, tensors = read_checkpoint(folder)
    with torch.device("meta"):
        encoder = BiLSTM(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}
    check_shapes(tensors, shapes, source)
    check_weights(tensors, source)
    encoder = BiLSTM(config)  # PyTorch keeps an LSTM's weights in lists that `assign` would miss
    encoder.load_state_dict(tensors)
    return encoder, []


def make_folder(folder: Path) -> None:
    """Create the folder of an encoder; raise EncoderError for a file, a run or an export."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise EncoderError(f"{folder}: expected a folder or nothing, found a file") from error
    parts = (EXPORTED, HEADS)
    if found := next((name for name in parts if (folder / name).exists()), None):
        raise EncoderError(
            f"{folder}: expected a folder without a run or the heads of an export, found "
            f"{found}; choose another folder"
        )
    if (folder / "config.json").exists():
        read_config(folder)  # raises EncoderError for the file of another program


def save_encoder(encoder: AnyEncoder, folder: Path) -> None:
    """Write `config.json` and `model.safetensors`; transformers opens those of a transformer."""
    if isinstance(encoder, Encoder):
        config, tensors = config_to_transformers(encoder.config), to_checkpoint(encoder)
    else:
        state = encoder.state_dict().items()
        config = encoder.config.to_json()
        tensors = {name: value.detach().cpu().contiguous() for name, value in state}
    write_json(folder / "config.json", config)
    save_tensors(tensors, folder / "model.safetensors", {"format": "pt"})
