"""Words as tokens: a vocabulary from text, vectors from a file, and an encoder's folder of both."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import tokenizers
import torch
from tokenizers import models, normalizers, pre_tokenizers, processors

from minbert.bilstm import BiLSTM, BiLSTMConfig, random_bilstm
from minbert.errors import EncoderError
from minbert.folder import SentenceSettings, write_sentence_settings
from minbert.stored import save_encoder
from minbert.tokenizer import Tokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
MOST_WORDS = 50_000


def word_tokenizer(words: Sequence[str], max_tokens: int) -> Tokenizer:
    """Lower-cased words and marks, each a token; others are `[UNK]`.

    A text begins with `[CLS]` and ends with `[SEP]`, so that an empty one has tokens, too.
    """
    vocabulary = {word: i for i, word in enumerate((*SPECIAL, *words))}
    backend = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    backend.add_special_tokens(list(SPECIAL))
    return Tokenizer(backend, max_tokens, settings={"tokenizer_class": "PreTrainedTokenizerFast"})


def vocabulary_of(texts: Iterable[str], least: int = 1, most: int = MOST_WORDS) -> list[str]:
    """The `most` frequent words that come `least` times, the most frequent first.

    Words are those of `word_tokenizer`; of equally frequent ones the alphabet decides.
    """
    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        pieces = splitter.pre_tokenize_str(normalizer.normalize_str(text))
        counts.update(word for word, _ in pieces)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, count in ranked[:most] if count >= least and word not in SPECIAL]


def read_vectors(file: Path, words: Iterable[str]) -> dict[str, np.ndarray]:
    """Vectors of these words from a file in GloVe's format: a word and its numbers, a line each.

    The file is mapped, not read into memory, and only the lines of wanted words are parsed. A first
    line of two numbers, as word2vec's format has it, is passed over, and so is what stands for
    several words. EncoderError names the line of what is no vector, or has another width than the
    first.
    """
    wanted = {word.encode(): word for word in words}
    found: dict[str, np.ndarray] = {}
    width: int | None = None
    try:
        with file.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as m:
            for number, line in enumerate(iter(m.readline, b""), 1):
                word, _, rest = line.rstrip().partition(b" ")
                if word not in wanted or (number == 1 and rest.isdigit()):
                    continue
                fields = rest.split()
                if fields and not is_number(fields[0]):
                    continue  # the beginning of several words, as glove.840B has some
                vector = np.array([], np.float32)
                if all(map(is_number, fields)):
                    vector = np.array(fields, np.float32)
                if not len(vector) or not np.isfinite(vector).all():
                    raise EncoderError(
                        f"{file}, line {number}: expected a word and its numbers, "
                        f"found {line[:40]!r}"
                    )
                width = width or len(vector)
                if len(vector) != width:
                    raise EncoderError(
                        f"{file}, line {number}: expected {width} numbers, found {len(vector)}"
                    )
                found[wanted[word]] = vector
    except (OSError, ValueError) as error:  # mmap refuses an empty file by ValueError
        if isinstance(error, EncoderError):
            raise
        raise EncoderError(f"{file}: expected word vectors, found: {error}") from error
    if not found:
        raise EncoderError(f"{file}: expected vectors of some of the words, found none")
    return found


def is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def build_bilstm(
    folder: Path,
    texts: Iterable[str],
    vectors: Path | None = None,
    units: int = 128,
    num_layers: int = 1,
    dropout: float = 0.2,
    embedding_size: int = 300,
    max_tokens: int = 512,
    pooling: str = "mean",
    seed: int = 0,
) -> str:
    """Write the folder of an untrained BiLSTM for the words of these texts; says what it holds.

    With `vectors` its words begin there, and their width is the file's; words without a vector
    begin normal, with the deviation of those that have one. Without, all words are learnt. A word
    that comes once and has no vector is left out: it teaches what is unknown.
    """
    texts = list(texts)
    words = vocabulary_of(texts)
    if not words:
        raise EncoderError("expected texts with words, found none")
    known = read_vectors(vectors, words) if vectors else {}
    frequent = set(vocabulary_of(texts, least=2))
    words = [word for word in words if word in frequent or word in known] or words
    width = len(next(iter(known.values()))) if known else embedding_size
    size = len(SPECIAL) + len(words)
    config = BiLSTMConfig(size, width, units, num_layers, dropout, max_tokens)
    encoder = random_bilstm(config, seed)
    if known:
        fill(encoder, words, known, seed)
    place = folder.resolve()
    unfinished = place.with_name(f"{place.name}.tmp")
    unfinished.mkdir(parents=True, exist_ok=True)
    save_encoder(encoder, unfinished)
    word_tokenizer(words, max_tokens).save(unfinished)
    settings = SentenceSettings(pooling, False, max_tokens, False)
    write_sentence_settings(unfinished, settings, config.hidden_size)
    unfinished.replace(place)  # an empty one may be there
    share = f", {len(known) / len(words):.0%} of them with a vector" if vectors else ""
    return f"{len(words):,} words{share}, {num_layers} x {units} units: {folder}"


def fill(encoder: BiLSTM, words: Sequence[str], known: Mapping[str, np.ndarray], seed: int) -> None:
    """Put the known vectors into the table; the others are normal with their deviation."""
    table = np.stack(list(known.values()))
    draw = np.random.default_rng(seed)
    weight = draw.normal(0, table.std(), (len(SPECIAL) + len(words), table.shape[1]))
    for row, word in enumerate(words, len(SPECIAL)):
        if word in known:
            weight[row] = known[word]
    with torch.no_grad():
        encoder.embeddings.word.weight.copy_(torch.from_numpy(weight))
