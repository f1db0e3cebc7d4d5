"""The folder of an encoder: configuration, weights, pooling, normalisation and length limit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec

from common.errors import EncoderError, SettingsError
from common.files import atomic_write_text, read_json, read_json_if_any, write_json
from minbert.bilstm import BiLSTM
from minbert.checksums import EXPORTED, HEADS, is_run
from minbert.config import (
    BILSTM,
    AnyConfig,
    BiLSTMConfig,
    EncoderConfig,
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

CHAIN = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class SentenceSettings:
    """Settings of a sentence-transformers folder, apart from the encoder's configuration."""

    pooling: str | None = None
    normalize: bool = False
    max_tokens: int | None = None
    lower: bool = False


def read_sentence_settings(folder: Path) -> SentenceSettings:
    """Read the settings of a folder; a plain transformers folder gives the defaults.

    Raise EncoderError for settings that are not supported.
    """
    pooling, normalize = None, False
    if (folder / "modules.json").exists():
        pooling, normalize = read_modules(folder)
    file = folder / "config_sentence_transformers.json"
    if prompt := read_json_if_any(file).get("default_prompt_name"):
        raise EncoderError(f"{file}: the default_prompt_name {prompt!r:.60} is not supported")
    return SentenceSettings(pooling, normalize, *read_limit(folder))


class Module(msgspec.Struct):
    """A module of a sentence-transformers model: its class and its folder."""

    type: str
    path: str


def read_modules(folder: Path) -> tuple[str, bool]:
    """Return the pooling, and whether embeddings are normalised, of the modules of a folder."""
    file = folder / "modules.json"
    try:
        modules = msgspec.json.decode(file.read_bytes(), type=list[Module])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise EncoderError(f"{file}: expected a list of modules, found: {error}") from error
    kinds = tuple(one.type.rsplit(".", 1)[-1] for one in modules)
    if kinds not in (CHAIN, CHAIN[:2]):
        found = ", ".join(kinds) or "none"
        raise EncoderError(f"{file}: expected Transformer, Pooling and Normalize, found {found}")
    return read_pooling(folder / modules[1].path / "config.json"), kinds == CHAIN


def read_limit(folder: Path) -> tuple[int | None, bool]:
    """Return the limit of tokens per text, and whether texts are lower-cased first."""
    # Older models are named in the file: bert, roberta, ...
    file = next(iter(sorted(folder.glob("sentence_*_config.json"))), None)
    settings = {} if file is None else read_json(file)
    max_tokens = settings.get("max_seq_length")
    if max_tokens is None:  # since version 6, sentence-transformers keeps its limit here
        file = folder / "tokenizer_config.json"
        max_tokens = read_json_if_any(file).get("model_max_length")
    if max_tokens is not None and not (isinstance(max_tokens, int | float) and max_tokens >= 3):
        line = f"expected a length limit of at least 3 tokens, found {max_tokens!r}"
        raise EncoderError(f"{file}: {line}")
    # 1e30 stands for no limit.
    return None if max_tokens is None else int(min(max_tokens, 1e30)), bool(
        settings.get("do_lower_case")
    )


def read_pooling(file: Path) -> str:
    """Return the pooling: old files have one flag for each, new ones a name."""
    settings, names = read_json(file), {key: name for name, key in FOLDER_KEYS.items()}
    flags = [key for key, on in settings.items() if key.startswith("pooling_mode_") and on]
    found = settings.get("pooling_mode") or "+".join(str(names.get(key, key)) for key in flags)
    if found not in tuple(POOLINGS):
        raise EncoderError(f"{file}: expected pooling {', '.join(POOLINGS)}, found {found!r}")
    return str(found)


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
    limit = {"max_seq_length": settings.max_tokens, "do_lower_case": settings.lower}
    write_json(folder / "sentence_bert_config.json", limit)


AnyEncoder = Encoder | BiLSTM


def read_config(folder: Path) -> AnyConfig:
    """Read the encoder's configuration; raise EncoderError that names the file and the fault."""
    file = folder / "config.json"
    content = read_json(file)
    if is_run(content):
        line = f"this is a run, not an encoder; its encoder is in {folder / 'best'}"
        raise EncoderError(f"{folder}: {line}, and --init {folder} starts from the run")
    try:
        if content.get("model_type") == BILSTM:
            return msgspec.convert(content, BiLSTMConfig)
        return config_from_transformers(content)
    except (EncoderError, msgspec.ValidationError) as error:
        raise EncoderError(f"{file}: {error}") from error


def tokenizer_of(
    folder: Path, config: AnyConfig, settings: SentenceSettings, max_tokens: int | None
) -> Tokenizer:
    """Return the tokenizer of a folder, with its limit or `max_tokens`.

    Raise EncoderError, or SettingsError for a limit above the encoder's."""
    limit = min(settings.max_tokens or config.max_tokens, config.max_tokens)
    if max_tokens is not None and not 3 <= max_tokens <= config.max_tokens:
        raise SettingsError(
            f"max_tokens: expected a whole number from 3 to {config.max_tokens}, the encoder's "
            f"longest text, found {max_tokens!r:.40}"
        )
    tokenizer = load_tokenizer(folder, config.family, max_tokens or limit, settings.lower)
    backend = tokenizer.backend
    largest = max((*backend.get_vocab().values(), *backend.encode("", "").ids))
    if largest >= config.vocab_size:
        line = f"expected ids of tokens below {config.vocab_size} (vocab_size in config.json)"
        raise EncoderError(f"{folder}: {line}, found a tokenizer with {largest}")
    return tokenizer


def load_encoder(folder: Path, config: AnyConfig) -> tuple[Encoder | BiLSTM, list[str]]:
    """Return an encoder with the weights of `folder`, and the names of ignored tensors."""
    if isinstance(config, EncoderConfig):
        return load_transformer(folder, config)
    source, tensors = read_checkpoint(folder)
    encoder = BiLSTM(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}
    check_shapes(tensors, shapes, source)
    check_weights(tensors, source)
    encoder.load_state_dict(tensors)
    return encoder, []


def make_folder(folder: Path) -> None:
    """Create the folder of an encoder; raise EncoderError for a run or an export."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = (EXPORTED, HEADS)
    if found := next((name for name in parts if (folder / name).exists()), None):
        raise EncoderError(
            f"{folder}: the folder holds a run or an export ({found}); choose another folder"
        )
    if (folder / "config.json").exists():
        read_config(folder)  # raises EncoderError for the file of another program


def save_encoder(encoder: AnyEncoder, folder: Path) -> None:
    """Write `config.json` and `model.safetensors`; transformers opens those of a transformer."""
    if isinstance(encoder, Encoder):
        config, tensors = config_to_transformers(encoder.config), to_checkpoint(encoder)
    else:
        state = encoder.state_dict().items()
        config = msgspec.to_builtins(encoder.config)
        tensors = {name: value.detach().cpu().contiguous() for name, value in state}
    write_json(folder / "config.json", config)
    save_tensors(tensors, folder / "model.safetensors", {"format": "pt"})
