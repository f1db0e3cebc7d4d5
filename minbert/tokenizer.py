"""Conversion of text to token ids with Hugging Face's `tokenizers`."""

from __future__ import annotations

import json
import mmap
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from common.atomic_files import atomic_write_text, check_regular
from common.errors import EncoderError, TruncationWarning
from common.json_files import read_json
from minbert.batching import TokenLists
from minbert.sentences import check_texts

CHUNK = 2048  # texts tokenised at once; limits the memory of the library's result objects


class Tokenizer:
    """Tokenizer that adds special tokens, truncates to `max_tokens` and never pads.

    Truncation and padding settings of a `tokenizer.json` are ignored: all-MiniLM's file would pad
    every sentence to 128 tokens.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        max_tokens: int,
        lower: bool = False,
        settings: dict[str, Any] | None = None,
    ) -> None:
        backend.no_padding()
        backend.enable_truncation(max_tokens)
        self.backend, self.max_tokens, self.lower = backend, max_tokens, lower
        self.settings = settings or {}

    @property
    def vocab_size(self) -> int:
        return self.backend.get_vocab_size()

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> TokenLists:
        """Tokenise n texts; with `pairs`, as `[CLS] text [SEP] pair [SEP]` with segments.

        Raises TypeError for anything that is not a string, for example a pair instead of a text.
        """
        for column in (texts, pairs or ()):
            check_texts(column)
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(f"pairs: expected {len(texts)} of them, found {len(pairs)}")
        dtypes = np.int32, np.int8, np.int64, np.bool_
        ids, segments, lengths, truncated = map(GrowingArray, dtypes)
        for begin in range(0, len(texts), CHUNK):
            inputs: list[Any] = self.cased(texts[begin : begin + CHUNK])
            if pairs is not None:
                inputs = list(zip(inputs, self.cased(pairs[begin : begin + CHUNK]), strict=True))
            chunk = self.backend.encode_batch_fast(inputs)
            ids.append(np.concatenate([np.array(one.ids, np.int32) for one in chunk]))
            lengths.append(np.array([len(one.ids) for one in chunk], np.int64))
            truncated.append(np.array([bool(one.overflowing) for one in chunk]))
            if pairs is not None:
                segments.append(np.concatenate([np.array(one.type_ids, np.int8) for one in chunk]))
        return TokenLists(
            ids=ids.array(),
            offsets=np.concatenate([[0], np.cumsum(lengths.array(), dtype=np.int64)]),
            truncated=truncated.array(),
            segments=None if pairs is None or not len(texts) else segments.array(),
        )

    def cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts] if self.lower else list(texts)

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and `tokenizer_config.json`, which transformers opens."""
        self.backend.no_truncation()
        content = self.backend.to_str(pretty=True)
        self.backend.enable_truncation(self.max_tokens)
        atomic_write_text(folder / "tokenizer.json", content)
        settings = self.settings | {"model_max_length": self.max_tokens}
        atomic_write_text(folder / "tokenizer_config.json", json.dumps(settings, indent=2))


def load_tokenizer(folder: Path, family: str, max_tokens: int, lower: bool = False) -> Tokenizer:
    """Read `tokenizer.json`, else `vocab.txt` (BERT) or `vocab.json` + `merges.txt` (RoBERTa)."""
    settings_file = folder / "tokenizer_config.json"
    settings = read_json(settings_file) if settings_file.exists() else {}
    classes = {"bert": "BertTokenizer", "roberta": "RobertaTokenizer"}
    default_class = classes.get(family, "PreTrainedTokenizerFast")
    try:
        backend = read_backend(folder, family, settings)
        return Tokenizer(backend, max_tokens, lower, {"tokenizer_class": default_class} | settings)
    except EncoderError:
        raise
    except Exception as error:  # the library has no class for its own errors
        reason = " ".join(str(error).split())
        names = ("tokenizer.json", "vocab.txt", "vocab.json")
        file = next(folder / name for name in names if (folder / name).exists())
        raise EncoderError(f"{file}: the tokenizer's files cannot be read: {reason}") from error


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
    special = {name: settings.get(f"{name}_token", f"[{name.upper()}]") for name in _SPECIAL}
    special = {k: v["content"] if isinstance(v, dict) else v for k, v in special.items()}
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
    for piece in ("<s>", "</s>"):
        if piece not in vocab:
            raise EncoderError(f"{vocabulary}: expected a key {piece!r}, found none")
    prefix_space = bool(settings.get("add_prefix_space", False))
    backend = tokenizers.Tokenizer(models.BPE.from_file(str(vocabulary), str(merges)))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.RobertaProcessing(
        ("</s>", vocab["</s>"]),
        ("<s>", vocab["<s>"]),
        trim_offsets=True,
        add_prefix_space=prefix_space,
    )
    special = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    backend.add_special_tokens([piece for piece in special if piece in vocab])
    return backend


IN_MEMORY = 1 << 25  # bytes; two million sentences need about four times as much


class GrowingArray:
    """An array of one type to which parts are appended.

    Above IN_MEMORY bytes, the numbers go to an unnamed temporary file, which is memory-mapped: the
    system keeps in memory only the parts in use. The file disappears with the array, or with the
    process if that ends first.
    """

    def __init__(self, dtype: type) -> None:
        self.dtype = dtype
        self.parts: list[np.ndarray] = []
        self.size = 0
        self.file: IO[bytes] | None = None

    def append(self, part: np.ndarray) -> None:
        self.size += part.nbytes
        self.parts.append(part.astype(self.dtype, copy=False))
        if self.size > IN_MEMORY:
            if self.file is None:
                self.file = TemporaryFile()  # noqa: SIM115 (open as long as it is mapped)
            for one in self.parts:
                self.file.write(one.tobytes())
            self.parts = []

    def array(self) -> np.ndarray:
        """Return all numbers; the array is read-only if it is memory-mapped."""
        if self.file is None:
            return np.concatenate(self.parts) if self.parts else np.zeros(0, self.dtype)
        self.file.flush()
        mapped = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, self.dtype)


def truncation(cut: int, total: int, texts: str, max_tokens: int) -> str:
    """Return `12 of 8,544 train texts are longer than 256 tokens and were cut`."""
    longer, were = ("is", "was") if cut == 1 else ("are", "were")
    return f"{cut:,} of {total:,} {texts} {longer} longer than {max_tokens} tokens and {were} cut"


def warn_of_truncation(cut: int, total: int, texts: str, max_tokens: int) -> None:
    """Warn the caller's caller if any texts were cut."""
    if cut:
        warnings.warn(truncation(cut, total, texts, max_tokens), TruncationWarning, stacklevel=3)
