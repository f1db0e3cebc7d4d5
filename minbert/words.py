"""Word vocabularies and word vectors of a BiLSTM."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import tokenizers
import torch
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors

from common.errors import EncoderError
from common.files import atomic_path, check_regular
from minbert.bilstm import BiLSTM, random_bilstm
from minbert.config import BiLSTMConfig
from minbert.folder import SentenceSettings, save_encoder, write_sentence_settings
from minbert.tokenizer import Tokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
MOST_WORDS = 50_000
# Splits texts like the Penn Treebank and GloVe: do n't, it 's, u.s., mr., 3.5, well-made, -lrb-.
WORD = "|".join(
    (
        r"-[lr][rsc]b-",
        r"(?:\w\.){2,}",
        r"(?<!\w)(?:mr|mrs|ms|dr|vs|jr|sr|st)\.",
        r"\w+(?=n't(?!\w))|n't(?!\w)|'(?:s|re|ve|ll|d|m)(?!\w)",
        r"\d+(?:[.,]\d+)+|\w+(?:-\w+)*",
        r"\.{3}|--|``|''|[^\w\s]",
    )
)
NORMALIZER = normalizers.Sequence(
    [
        normalizers.Replace("’", "'"),
        normalizers.BertNormalizer(lowercase=True, strip_accents=False),
    ]
)
SPLITTER = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)


def word_tokenizer(words: Sequence[str], max_tokens: int) -> Tokenizer:
    """Build a tokenizer of lower-cased words and punctuation, split as in GloVe.

    Unknown words become `[UNK]`. `[CLS]` and `[SEP]` enclose a text, so an empty one has tokens.
    """
    vocabulary = {word: i for i, word in enumerate((*SPECIAL, *words))}
    backend = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.normalizer = NORMALIZER
    backend.pre_tokenizer = SPLITTER
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    backend.add_special_tokens(list(SPECIAL))
    return Tokenizer(backend, max_tokens, settings={"tokenizer_class": "PreTrainedTokenizerFast"})


def build_vocabulary(texts: Iterable[str]) -> dict[str, int]:
    """Return the count of each of the `MOST_WORDS` most frequent words, the most frequent first.

    Words are those of `word_tokenizer`; equally frequent words are in alphabetical order.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        pieces = SPLITTER.pre_tokenize_str(NORMALIZER.normalize_str(text))
        counts.update(word for word, _ in pieces)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {word: count for word, count in ranked[:MOST_WORDS] if word not in SPECIAL}


def build_bilstm(
    folder: Path,
    texts: Iterable[str],
    vectors: Path | None = None,
    units: int = BiLSTMConfig.units,
    num_layers: int = BiLSTMConfig.num_layers,
    dropout: float = BiLSTMConfig.dropout,
    embedding_size: int = BiLSTMConfig.embedding_size,
    max_tokens: int = BiLSTMConfig.max_tokens,
    pooling: str = "mean",
    seed: int = 0,
) -> str:
    """Write the folder of an untrained BiLSTM for the words of these texts; return a summary.

    `vectors` initialises the words and sets their width. Words without a vector are drawn from a
    normal distribution with the others' standard deviation. Without `vectors`, all words are drawn.
    A word that occurs once and has no vector is left out: it trains the embedding of `[UNK]`.
    """
    counts = build_vocabulary(texts)
    if not counts:
        raise EncoderError("expected texts with words, found none")
    known = read_vectors(vectors, counts) if vectors else {}
    words = [word for word, count in counts.items() if count > 1 or word in known] or [*counts]
    width = len(next(iter(known.values()))) if known else embedding_size
    size = len(SPECIAL) + len(words)
    config = BiLSTMConfig(size, width, units, num_layers, dropout, max_tokens)
    encoder = random_bilstm(config, seed)
    if known:
        fill(encoder, words, known, seed)
    settings = SentenceSettings(pooling, False, max_tokens, False)
    with atomic_path(folder.resolve(), overwrite=False) as new:
        new.mkdir(parents=True)
        save_encoder(encoder, new)
        word_tokenizer(words, max_tokens).save(new)
        write_sentence_settings(new, settings, config.hidden_size)
    share = f", {len(known) / len(words):.0%} of them with a vector" if vectors else ""
    return f"{len(words):,} words{share}, {num_layers} x {units} units: {folder}"


def fill(encoder: BiLSTM, words: Sequence[str], known: Mapping[str, np.ndarray], seed: int) -> None:
    """Initialise words from the known vectors; draw the others with the same deviation."""
    table = np.stack(list(known.values()))
    draw = np.random.default_rng(seed)
    weight = draw.normal(0, table.std(), (len(SPECIAL) + len(words), table.shape[1]))
    for row, word in enumerate(words, len(SPECIAL)):
        if word in known:
            weight[row] = known[word]
    with torch.no_grad():
        encoder.embeddings.word.weight.copy_(torch.from_numpy(weight))


PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")  # magic bytes: gzip, zip, bzip2, xz
BOM = b"\xef\xbb\xbf"


def read_vectors(file: Path, words: Iterable[str]) -> dict[str, np.ndarray]:
    """Read the vectors of these words from a file of lines, each with a word and its numbers.

    The file is memory-mapped, and only the lines of requested words are parsed. A first line of two
    numbers (word2vec's header) and entries of several words are skipped. If a word is repeated, its
    first vector counts. Raises EncoderError with the line number for an invalid vector, or for a
    width other than the first vector's.
    """
    by_bytes = {word.encode(): word for word in words}
    vectors: dict[str, np.ndarray] = {}
    check_regular(file, EncoderError)
    try:
        with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as m:
            if m[:6].startswith(PACKED):
                raise EncoderError(f"{file}: expected word vectors as text, found a packed file")
            width: int | None = None
            for number, line in enumerate(iter(m.readline, b""), 1):
                line = line.removeprefix(BOM) if number == 1 else line
                word, *rest = line.split(None, 1) or [b""]
                if width is None and rest:
                    if number == 1 and rest[0].strip().isdigit():
                        continue
                    width = len(rest[0].split())
                if word in by_bytes and by_bytes[word] not in vectors:
                    fields = rest[0].split() if rest else []
                    vector = vector_of(fields, width or 1, f"{file}, line {number}")
                    if vector is not None:
                        vectors[by_bytes[word]] = vector
    except (OSError, ValueError) as error:  # mmap refuses an empty file by ValueError
        if isinstance(error, EncoderError):
            raise
        raise EncoderError(f"{file}: expected word vectors, found: {error}") from error
    if not vectors:
        raise EncoderError(f"{file}: expected vectors of some of the words, found none")
    return vectors


def vector_of(fields: list[bytes], width: int, where: str) -> np.ndarray | None:
    """Return the numbers of a line, or None if several words precede them."""
    numbers = [number_of(field) for field in fields]
    if None in numbers[:-width]:
        return None  # glove.840B has some
    vector = np.array([np.nan if number is None else number for number in numbers], np.float32)
    if not len(vector) or not np.isfinite(vector).all():
        shown = b" ".join(fields)[:40].decode(errors="replace")
        raise EncoderError(f"{where}: expected a word and its numbers, found {shown!r}")
    if len(vector) != width:
        raise EncoderError(f"{where}: expected {width} numbers, found {len(vector)}")
    return vector


def number_of(field: bytes) -> float | None:
    try:
        return float(field)
    except ValueError:
        return None
