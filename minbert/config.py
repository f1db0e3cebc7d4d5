"""Configuration of an encoder, read from and written to a folder's `config.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from common.errors import EncoderError, SettingsError

BILSTM = "bilstm"  # model_type of a BiLSTM in config.json; the others are Hugging Face's
# model_type in config.json -> (model family, class that transformers opens).
MODEL_TYPES = {
    "bert": ("bert", "BertModel"),
    "roberta": ("roberta", "RobertaModel"),
    "xlm-roberta": ("roberta", "XLMRobertaModel"),
}
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")


# Field, type, lowest and highest value. Existing models are far below these bounds, which keep a
# folder from an unknown source from using all memory.
CHECKS = (
    ("vocab_size", int, 1, 10_000_000),
    ("hidden_size", int, 1, 65_536),
    ("num_layers", int, 1, 1_000),
    ("num_heads", int, 1, 1_024),
    ("intermediate_size", int, 1, 1_000_000),
    ("max_positions", int, 3, 10_000_000),
    ("type_vocab_size", int, 1, 1_000),
    ("pad_id", int, 0, 10_000_000),
    ("layer_norm_eps", float, 0, 1),
    ("hidden_dropout", float, 0, 1),
    ("attention_dropout", float, 0, 1),
)


@dataclass(frozen=True)
class EncoderConfig:
    """Configuration of a BERT-like encoder; defaults are BERT base (Devlin et al., 2019).

    `max_positions` is the number of rows of the position table. RoBERTa's family uses only the rows
    after `pad_id`. `max_tokens` is the resulting limit of a sentence, special tokens included.
    """

    model_type: str = "bert"
    vocab_size: int = 30522
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int = 3072
    max_positions: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    activation: str = "gelu"
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    pad_id: int = 0

    def __post_init__(self) -> None:
        for name, kind, low, high in CHECKS:
            value = getattr(self, name)
            valid = isinstance(value, int) if kind is int else isinstance(value, int | float)
            if not valid or isinstance(value, bool) or not low <= value <= high:
                what = "a whole number" if kind is int else "a number"
                span = f"from {low:,} to {high:,}"
                raise EncoderError(
                    f"{TRANSFORMERS_KEYS[name]}: expected {what} {span}, found {value!r}"
                )
        check_choice("model_type", self.model_type, MODEL_TYPES)
        check_choice("hidden_act", self.activation, ACTIVATIONS)
        if self.hidden_size % self.num_heads:
            raise EncoderError(
                f"hidden_size: expected a multiple of {self.num_heads} attention heads, "
                f"found {self.hidden_size}"
            )

    @property
    def family(self) -> str:
        return MODEL_TYPES[self.model_type][0]

    @property
    def position_offset(self) -> int:
        """Row of the position table for the first token."""
        return self.pad_id + 1 if self.family == "roberta" else 0

    @property
    def max_tokens(self) -> int:
        """Maximum length of a sequence."""
        return self.max_positions - self.position_offset


def check_choice(key: str, value: object, choices: Iterable[str]) -> None:
    """Raise EncoderError for a value of `config.json` that is not one of the choices."""
    if value not in tuple(choices):
        raise EncoderError(f"{key}: expected one of {', '.join(choices)}, found {value!r}")


# Our field -> its key in Hugging Face's config.json; an absent key means transformers' default.
TRANSFORMERS_KEYS = {
    "model_type": "model_type",
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "max_positions": "max_position_embeddings",
    "type_vocab_size": "type_vocab_size",
    "layer_norm_eps": "layer_norm_eps",
    "activation": "hidden_act",
    "hidden_dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "pad_id": "pad_token_id",
}
# Defaults of transformers that differ from BERT's.
TYPE_DEFAULTS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"vocab_size": 50265, "pad_id": 1},
    "xlm-roberta": {"pad_id": 1},
}


def config_from_transformers(content: Mapping[str, Any]) -> EncoderConfig:
    """Read the content of a Hugging Face `config.json`.

    Raises EncoderError for an unsupported model: another `model_type`, relative positions,
    a decoder, an unknown activation.
    """
    model_type = content.get("model_type")
    check_choice("model_type", model_type, MODEL_TYPES)
    positions = content.get("position_embedding_type", "absolute")
    if positions not in (None, "absolute"):
        raise EncoderError(f"position_embedding_type: expected 'absolute', found {positions!r}")
    if content.get("is_decoder"):
        raise EncoderError("is_decoder: expected false (an encoder), found true")
    fields = dict(TYPE_DEFAULTS[str(model_type)])
    fields |= {
        ours: content[theirs]
        for ours, theirs in TRANSFORMERS_KEYS.items()
        if content.get(theirs) is not None
    }
    return EncoderConfig(**fields)


def config_to_transformers(config: EncoderConfig) -> dict[str, Any]:
    """Return the content of a `config.json` that `transformers.AutoModel` opens."""
    content = {theirs: getattr(config, ours) for ours, theirs in TRANSFORMERS_KEYS.items()}
    return content | {
        "architectures": [MODEL_TYPES[config.model_type][1]],
        "position_embedding_type": "absolute",
        "dtype": "float32",
    }


@dataclass(frozen=True)
class BiLSTMConfig:
    """Configuration of a BiLSTM; defaults are SuperConText's for small data sets (section IV.B)."""

    vocab_size: int
    embedding_size: int = 300
    units: int = 128
    num_layers: int = 1
    dropout: float = 0.2
    max_tokens: int = 512

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "dropout":
                valid = isinstance(value, int | float) and 0 <= value < 1
                expected = "a number from 0 to below 1"
            else:
                valid, expected = isinstance(value, int) and value >= 1, "a whole number from 1"
            if not valid or isinstance(value, bool):
                raise EncoderError(f"{field.name}: expected {expected}, found {value!r}")

    @property
    def hidden_size(self) -> int:
        """Width of a token's state: both directions."""
        return 2 * self.units

    @property
    def family(self) -> str:
        """Model family, as in `EncoderConfig`."""
        return BILSTM

    def to_json(self) -> dict[str, Any]:
        return {"model_type": BILSTM, **asdict(self)}


def bilstm_from_json(content: Mapping[str, Any]) -> BiLSTMConfig:
    """Read what `to_json` wrote; raise EncoderError for a missing or unknown key."""
    settings = {key: value for key, value in content.items() if key != "model_type"}
    known = {field.name for field in fields(BiLSTMConfig)}
    if unknown := [key for key in settings if key not in known]:
        raise EncoderError(f"expected the settings of a BiLSTM, found {unknown[0]!r}")
    if "vocab_size" not in settings:
        raise EncoderError("vocab_size: expected a whole number from 1, found none")
    return BiLSTMConfig(**settings)


AnyConfig = EncoderConfig | BiLSTMConfig


def transformer_config(setting: str, config: AnyConfig) -> EncoderConfig:
    """Return the configuration of a transformer; raise SettingsError if `setting` has a BiLSTM."""
    if isinstance(config, BiLSTMConfig):
        raise SettingsError(f"{setting}: expected a transformer, found a BiLSTM")
    return config


Precision = Literal["fp32", "bf16"]
# With `auto`, which minbert/precision.py turns into one of them for a device and an encoder.
PrecisionSetting = Literal["auto", "fp32", "bf16"]
Pooling = Literal["mean", "cls", "max"]
Tokens = Annotated[int, Meta(ge=3, le=1_000_000)]
DEVICE = "auto, cpu, cuda or cuda:N"
Device = Annotated[str, Meta(pattern=r"^(auto|cpu|cuda(:[0-9]{1,3})?)$", description=DEVICE)]
PRECISIONS: tuple[str, ...] = get_args(Precision)
