"""Reads a folder's tokenizer: the library's files, and what transformers takes from others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from common.errors import EncoderError
from common.files import check_regular, read_json_if_any
from minbert.tokenizer import Tokenizer

CLASSES = {"bert": "BertTokenizer", "roberta": "RobertaTokenizer"}  # of a folder that names none
UNCHANGED = ("PreTrainedTokenizerFast", "TokenizersBackend")  # they take tokenizer.json as it is
NORMALIZER = {  # settings in tokenizer_config.json, and their names in BERT's normalizer
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
OPTIONS = ("single_word", "lstrip", "rstrip", "normalized", "special")  # of an added token


def load_tokenizer(folder: Path, family: str, max_tokens: int, lower: bool = False) -> Tokenizer:
    """Read `tokenizer.json`, else `vocab.txt` (BERT) or `vocab.json` + `merges.txt` (RoBERTa).

    Settings and added tokens in other files of the folder count as in transformers. Raises
    EncoderError for files that cannot be read, and for settings that are not supported.
    """
    settings = read_json_if_any(folder / "tokenizer_config.json")
    try:
        backend = read_backend(folder, family, settings)
        check_settings(folder, backend, settings)
        apply_settings(backend, settings)
        add_tokens(folder, backend, settings)
        settings = {"tokenizer_class": class_of(backend, family)} | settings
        found = Tokenizer(backend, max_tokens, lower, settings)
        if family in CLASSES and not backend.num_special_tokens_to_add(False):
            line = "expected a tokenizer that adds special tokens, found none"
            raise EncoderError(f"{folder}: {line}")
        return found
    except EncoderError:
        raise
    except Exception as error:  # the library has no class for its own errors
        reason = " ".join(str(error).split())
        names = ("tokenizer.json", "vocab.txt", "vocab.json")
        file = next(folder / name for name in names if (folder / name).exists())
        raise EncoderError(f"{file}: the tokenizer's files cannot be read: {reason}") from error


def class_of(backend: tokenizers.Tokenizer, family: str) -> str:
    """Return the class with which transformers opens a tokenizer whose folder names none."""
    if family == "roberta" and isinstance(backend.model, models.Unigram):
        return "XLMRobertaTokenizer"
    return CLASSES.get(family, UNCHANGED[0])


def check_settings(
    folder: Path, backend: tokenizers.Tokenizer, settings: Mapping[str, Any]
) -> None:
    """Raise EncoderError for settings of transformers that would change the tokens."""
    sides = {settings.get("truncation_side", "right"), (backend.truncation or {}).get("direction")}
    if {"left", "Left"} & sides:
        raise EncoderError(f"{folder}: expected truncation_side right, found left")
    if settings.get("split_special_tokens"):
        raise EncoderError(f"{folder}: expected split_special_tokens false, found true")


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


def add_tokens(folder: Path, backend: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> None:
    """Add the tokens that other files of the folder have; raise EncoderError for other ids."""
    known = {one.content for one in backend.get_added_tokens_decoder().values()}
    for token, number in added_tokens(folder, settings):
        if token.content not in known:
            known.add(token.content)
            (backend.add_special_tokens if token.special else backend.add_tokens)([token])
        found = backend.token_to_id(token.content)
        if number is not None and found != number:
            line = f"expected the added token {token.content!r} with id {number}, found {found}"
            raise EncoderError(f"{folder}: {line}")


def added_tokens(
    folder: Path, settings: Mapping[str, Any]
) -> Iterator[tuple[tokenizers.AddedToken, int | None]]:
    """Yield the added tokens in files beside `tokenizer.json`, by id, and those without an id."""
    described = settings.get("added_tokens_decoder") or {}
    plain = read_json_if_any(folder / "added_tokens.json")
    numbered: dict[int, Any] = {number: one for one, number in plain.items()}
    numbered |= {int(number): one for number, one in described.items()}
    for number in sorted(numbered):
        yield added_token(numbered[number], special=False), number
    for content in (settings, read_json_if_any(folder / "special_tokens_map.json")):
        for key in ("additional_special_tokens", "extra_special_tokens"):
            several = content.get(key) or ()
            for token in several.values() if isinstance(several, dict) else several:
                yield added_token(token, special=True), None


def added_token(token: str | Mapping[str, Any], special: bool) -> tokenizers.AddedToken:
    """Return a token that is given as its text or with its options."""
    if isinstance(token, str):
        return tokenizers.AddedToken(token, special=special, normalized=not special)
    options = {key: token[key] for key in OPTIONS if key in token}
    return tokenizers.AddedToken(token["content"], **{"special": special, **options})


def read_backend(folder: Path, family: str, settings: dict[str, Any]) -> tokenizers.Tokenizer:
    for name in ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt"):
        check_regular(folder / name, EncoderError)
    if (folder / "tokenizer.json").exists():
        return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    if family == "bert" and (folder / "vocab.txt").exists():
        return wordpiece(folder / "vocab.txt", settings)
    if family == "roberta" and (folder / "vocab.json").exists():
        return byte_level_bpe(folder / "vocab.json", folder / "merges.txt", settings)
    vocabulary = "vocab.txt" if family == "bert" else "vocab.json with merges.txt"
    raise EncoderError(f"{folder}: expected tokenizer.json or {vocabulary}, found neither")


def wordpiece(vocabulary: Path, settings: dict[str, Any]) -> tokenizers.Tokenizer:
    """Build BERT's tokenizer from `vocab.txt`, with the casing in `tokenizer_config.json`."""
    vocab = {
        piece: i for i, piece in enumerate(vocabulary.read_text("utf-8").rstrip("\n").split("\n"))
    }
    special = {name: token_of(settings, name, f"[{name.upper()}]") for name in _SPECIAL}
    for piece in (special["unk"], special["cls"], special["sep"]):
        if piece not in vocab:
            raise EncoderError(f"{vocabulary}: expected a line {piece!r}, found none")
    backend = tokenizers.Tokenizer(
        models.WordPiece(vocab, unk_token=special["unk"], max_input_chars_per_word=100)
    )
    backend.normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True),
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cls, sep = special["cls"], special["sep"]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(cls, vocab[cls]), (sep, vocab[sep])],
    )
    backend.decoder = decoders.WordPiece()
    backend.add_special_tokens([piece for piece in special.values() if piece in vocab])
    return backend


_SPECIAL = ("unk", "cls", "sep", "pad", "mask")


def byte_level_bpe(
    vocabulary: Path, merges: Path, settings: dict[str, Any]
) -> tokenizers.Tokenizer:
    """Build RoBERTa's tokenizer from `vocab.json` and `merges.txt`."""
    if not merges.exists():
        raise EncoderError(f"{merges}: expected next to {vocabulary.name}, found none")
    vocab = json.loads(vocabulary.read_text("utf-8"))
    begin, end = token_of(settings, "cls", "<s>"), token_of(settings, "sep", "</s>")
    for piece in (begin, end):
        if piece not in vocab:
            raise EncoderError(f"{vocabulary}: expected a key {piece!r}, found none")
    prefix_space = bool(settings.get("add_prefix_space", False))
    backend = tokenizers.Tokenizer(models.BPE.from_file(str(vocabulary), str(merges)))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.RobertaProcessing(
        (end, vocab[end]),
        (begin, vocab[begin]),
        trim_offsets=True,
        add_prefix_space=prefix_space,
    )
    special = (begin, "<pad>", end, "<unk>", "<mask>")
    backend.add_special_tokens([piece for piece in special if piece in vocab])
    return backend


def token_of(settings: Mapping[str, Any], name: str, default: str) -> str:
    """Return a special token that `tokenizer_config.json` gives as its text or with its options."""
    found = settings.get(f"{name}_token") or default
    return str(found["content"] if isinstance(found, dict) else found)
