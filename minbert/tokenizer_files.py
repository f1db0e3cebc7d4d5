"""Reads the tokenizer of a folder."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import normalizers, pre_tokenizers, processors

from common.errors import EncoderError, Notice
from common.files import read_json_if_any
from minbert.tokenizer import Tokenizer

# With these classes transformers takes `tokenizer.json` as it is.
UNCHANGED = ("PreTrainedTokenizerFast", "TokenizersBackend")
NORMALIZER = {  # settings in tokenizer_config.json, and their names in BERT's normalizer
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
UNUSUAL = "\U0001f9ff"  # unknown to most vocabularies
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def load_tokenizer(folder: Path, family: str, max_tokens: int, lower: bool = False) -> Tokenizer:
    """Read `tokenizer.json`, else `vocab.txt` (BERT) or `vocab.json` + `merges.txt` (RoBERTa).

    Raises EncoderError for files that cannot be read, and for settings that are not supported.
    """
    settings = read_json_if_any(folder / "tokenizer_config.json")
    if settings.get("truncation_side", "right") != "right":
        raise EncoderError(f"{folder}: truncation_side must be right, not left")
    try:
        backend = read_backend(folder, family, settings)
        apply_settings(backend, settings)
        if not backend.num_special_tokens_to_add(False):
            raise EncoderError(f"{folder}: expected a tokenizer that adds special tokens")
        check_template(json.loads(backend.post_processor.__getstate__()))
        found = Tokenizer(backend, max_tokens, lower, settings)
        backend.encode(UNUSUAL)
    except (EncoderError, KeyboardInterrupt):
        raise
    except BaseException as error:  # the library has no class for its errors, and it also panics
        reason = " ".join(str(error).split())
        raise EncoderError(f"{folder}: the tokenizer's files cannot be read: {reason}") from error
    return found


def check_template(processor: dict[str, Any]) -> None:
    """Raise ValueError for special tokens that the library would look up in vain, and panic."""
    for one in processor.get("processors", [processor]):
        pieces = [piece for key in ("single", "pair") for piece in one.get(key, ())]
        names = {piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece}
        if unknown := names - one.get("special_tokens", {}).keys():
            raise ValueError(f"the special token {min(unknown)} has no id")


def read_backend(folder: Path, family: str, settings: dict[str, Any]) -> tokenizers.Tokenizer:
    """Read the tokenizer's files; let `settings` say if a `vocab.txt` without settings is cased."""
    names = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt")
    one, words, pieces, merges = (folder / name for name in names)
    if one.exists():
        return tokenizers.Tokenizer.from_file(str(one))
    if family == "bert" and words.exists():
        backend = tokenizers.BertWordPieceTokenizer.from_file(str(words))._tokenizer
        if "do_lower_case" not in settings and is_cased(backend):
            settings["do_lower_case"] = False
            line = "its words have capitals, so texts keep theirs; do_lower_case in "
            warnings.warn(f"{words}: {line}tokenizer_config.json decides", Notice, stacklevel=2)
        return backend
    if family == "roberta" and pieces.exists() and merges.exists():
        backend = tokenizers.ByteLevelBPETokenizer.from_file(str(pieces), str(merges))._tokenizer
        begin, end = (backend.token_to_id(name) for name in ("<s>", "</s>"))
        backend.post_processor = processors.RobertaProcessing(("</s>", end), ("<s>", begin))
        backend.add_special_tokens(
            [name for name in ROBERTA if backend.token_to_id(name) is not None]
        )
        return backend
    vocabulary = "vocab.txt" if family == "bert" else "vocab.json with merges.txt"
    raise EncoderError(f"{folder}: the folder needs tokenizer.json or {vocabulary}")


def is_cased(backend: tokenizers.Tokenizer) -> bool:
    """Return whether more than a twentieth of the words has capitals."""
    words = [one for one in backend.get_vocab() if not one.startswith("[")]
    return sum(one != one.lower() for one in words) > len(words) / 20


def apply_settings(backend: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> None:
    """Let `tokenizer_config.json` overrule `tokenizer.json`, as transformers does."""
    if settings.get("tokenizer_class") in UNCHANGED:
        return
    normalizer, splitter = backend.normalizer, backend.pre_tokenizer
    if isinstance(normalizer, normalizers.BertNormalizer):
        for key in NORMALIZER.keys() & settings.keys():
            setattr(normalizer, NORMALIZER[key], settings[key])
        backend.normalizer = normalizer
    if isinstance(splitter, pre_tokenizers.ByteLevel) and "add_prefix_space" in settings:
        splitter.add_prefix_space = bool(settings["add_prefix_space"])
        backend.pre_tokenizer = splitter
