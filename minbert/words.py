"""Word vocabularies and word vectors of a BiLSTM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors

from common.errors import EncoderError
from common.files import atomic_path
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
    pooling: str = "mean",
    seed: int = 0,
    **settings: Any,
) -> str:
    """Write the folder of an untrained BiLSTM for the words of these texts; return a summary.

    `vectors` initialises the words and sets their width. Words without a vector are drawn from a
    normal distribution with the others' standard deviation. Without `vectors`, all words are drawn.
    A word that occurs once and has no vector is left out: it trains the embedding of `[UNK]`.
    `settings` are fields of BiLSTMConfig.
    """
    counts = build_vocabulary(texts)
    if not counts:
        raise EncoderError("the texts have no words")
    known = read_vectors(vectors, counts) if vectors else {}
    words = [word for word, count in counts.items() if count > 1 or word in known] or [*counts]
    if known:
        settings["embedding_size"] = len(next(iter(known.values())))
    config = BiLSTMConfig(len(SPECIAL) + len(words), **settings)
    encoder = random_bilstm(config, seed)
    if known:
        fill(encoder, words, known, seed)
    sentence = SentenceSettings(pooling, False, config.max_tokens, False)
    with atomic_path(folder.resolve(), overwrite=False) as new:
        new.mkdir(parents=True)
        save_encoder(encoder, new)
        word_tokenizer(words, config.max_tokens).save(new)
        write_sentence_settings(new, sentence, config.hidden_size)
    share = f", {len(known) / len(words):.0%} of them with a vector" if vectors else ""
    return f"{len(words):,} words{share}, {config.num_layers} x {config.units} units: {folder}"


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


def read_vectors(file: Path, words: Iterable[str]) -> dict[str, np.ndarray]:
    """Read the vectors of these words from a file of lines, each with a word and its numbers.

    A first line of two numbers (word2vec's header) and entries of several words are skipped. If a
    word is repeated, its first vector counts. Raises EncoderError with the number of a wrong line.
    """
    by_bytes = {word.encode(): word for word in words}
    vectors: dict[str, np.ndarray] = {}
    width = 0
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if width < 2:
                width = len(line.split()) - 1
            name, *_ = line.split(None, 1) or [b""]
            word = by_bytes.get(name)
            if width < 2 or word is None or word in vectors:
                continue
            numbers = line.split()[1:]
            if len(numbers) > width:  # entries of several words, as in glove.840B
                continue
            try:
                vectors[word] = np.array(numbers).astype(np.float32)
            except ValueError:
                numbers = []
            if len(numbers) != width:
                raise EncoderError(f"{file}, line {number}: expected a word and {width} numbers")
    if not vectors:
        raise EncoderError(f"{file}: the file has no vector of any word of the texts")
    return vectors
