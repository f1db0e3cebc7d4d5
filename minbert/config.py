"""Configuration of an encoder, read from and written to a folder's `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from common.errors import EncoderError, SettingsError

BILSTM = "bilstm"  # model_type of a BiLSTM in config.json; the others are Hugging Face's
# model_type in config.json -> (model family, class that transformers opens).
MODEL_TYPES = {
    "bert": ("bert", "BertModel"),
    "roberta": ("roberta", "RobertaModel"),
    "xlm-roberta": ("roberta", "XLMRobertaModel"),
}
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, lt=1)]
# Our field -> its key in Hugging Face's config.json, if it is another one.
TRANSFORMERS_KEYS = {
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "max_positions": "max_position_embeddings",
    "activation": "hidden_act",
    "hidden_dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "pad_id": "pad_token_id",
}


class EncoderConfig(msgspec.Struct, frozen=True, rename=TRANSFORMERS_KEYS):
    """Configuration of a BERT-like encoder; defaults are BERT base (Devlin et al., 2019).

    `max_positions` is the number of rows of the position table. RoBERTa's family uses only the rows
    after `pad_id`. `max_tokens` is the resulting limit of a sentence, special tokens included.
    """

    model_type: str = "bert"
    vocab_size: Count = 30522
    hidden_size: Count = 768
    num_layers: Annotated[Count, Meta(le=1000)] = 12
    num_heads: Count = 12
    intermediate_size: Count = 3072
    max_positions: Count = 512
    type_vocab_size: Count = 2
    layer_norm_eps: Share = 1e-12
    activation: Literal["gelu", "gelu_new", "gelu_pytorch_tanh", "relu"] = "gelu"
    hidden_dropout: Share = 0.1
    attention_dropout: Share = 0.1
    pad_id: Annotated[int, Meta(ge=0)] = 0

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_heads:
            raise ValueError(
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


# Defaults of transformers that differ from BERT's.
TYPE_DEFAULTS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"vocab_size": 50265, "pad_token_id": 1},
    "xlm-roberta": {"pad_token_id": 1},
}


def config_from_transformers(content: Mapping[str, Any]) -> EncoderConfig:
    """Read the content of a Hugging Face `config.json`.

    An absent key means transformers' default. Raises EncoderError for an unsupported model: another
    `model_type`, relative positions, a decoder; ValidationError for a value of another type.
    """
    model_type = str(content.get("model_type") or type_without_name(content))
    positions = content.get("position_embedding_type") or "absolute"
    if model_type not in MODEL_TYPES:
        known = ", ".join(MODEL_TYPES)
        raise EncoderError(f"model_type: expected one of {known}, found {model_type!r}")
    if positions != "absolute":
        raise EncoderError(f"position_embedding_type: expected 'absolute', found {positions!r}")
    if content.get("is_decoder"):
        raise EncoderError("is_decoder: expected false (an encoder), found true")
    given = {key: value for key, value in content.items() if value is not None}
    return msgspec.convert(TYPE_DEFAULTS[model_type] | given, EncoderConfig)


def type_without_name(content: Mapping[str, Any]) -> str | None:
    """Return the model type of a `config.json` of BERT without one; None for other content."""
    # RoBERTa's family, whose tensors have the same names, has other numbers here.
    of_bert = content.get("type_vocab_size") == 2 and not content.get("pad_token_id")
    return "bert" if of_bert and "hidden_size" in content else None


def config_to_transformers(config: EncoderConfig) -> dict[str, Any]:
    """Return the content of a `config.json` that `transformers.AutoModel` opens."""
    return msgspec.to_builtins(config) | {
        "architectures": [MODEL_TYPES[config.model_type][1]],
        "position_embedding_type": "absolute",
        "dtype": "float32",
    }


class BiLSTMConfig(
    msgspec.Struct, frozen=True, tag_field="model_type", tag=BILSTM, forbid_unknown_fields=True
):
    """Configuration of a BiLSTM; defaults are SuperConText's for small data sets (section IV.B)."""

    vocab_size: Count
    embedding_size: Count = 300
    units: Count = 128
    num_layers: Count = 1
    dropout: Share = 0.2
    max_tokens: Count = 512

    @property
    def hidden_size(self) -> int:
        """Width of a token's state: both directions."""
        return 2 * self.units

    @property
    def family(self) -> str:
        """Model family, as in `EncoderConfig`."""
        return BILSTM


AnyConfig = EncoderConfig | BiLSTMConfig


def transformer_config(setting: str, config: AnyConfig) -> EncoderConfig:
    """Return the configuration of a transformer; raise SettingsError if `setting` has a BiLSTM."""
    if isinstance(config, BiLSTMConfig):
        raise SettingsError(f"{setting}: needs a transformer, not a BiLSTM")
    return config


Precision = Literal["fp32", "bf16"]
# With `auto`, which minbert/precision.py turns into one of them for a device and an encoder.
PrecisionSetting = Literal["auto", "fp32", "bf16"]
Pooling = Literal["mean", "cls", "max"]
Tokens = Annotated[int, Meta(ge=3, le=1_000_000)]
DEVICE = "auto, cpu, cuda or cuda:N"
Device = Annotated[str, Meta(pattern=r"^(auto|cpu|cuda(:[0-9]{1,3})?)$", description=DEVICE)]
PRECISIONS: tuple[str, ...] = get_args(Precision)
