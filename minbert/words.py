"""Words as tokens: a vocabulary from text, vectors from a file, and an encoder's folder of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import tokenizers
import torch
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors

from common.atomic_files import written_aside
from common.errors import EncoderError
from minbert.bilstm import BiLSTM, BiLSTMConfig, random_bilstm
from minbert.folder import SentenceSettings, write_sentence_settings
from minbert.stored import save_encoder
from minbert.tokenizer import Tokenizer
from minbert.vectors import read_vectors

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
MOST_WORDS = 50_000
# As the Penn Treebank and GloVe part texts: do n't, it 's, u.s., mr., 3.5, well-made, -lrb-.
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
    """Lower-cased words and marks, each a token, parted as GloVe's are; others are `[UNK]`.

    A text begins with `[CLS]` and ends with `[SEP]`, so that an empty one has tokens, too.
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


def vocabulary_of(texts: Iterable[str], least: int = 1, most: int = MOST_WORDS) -> list[str]:
    """The `most` frequent words that come `least` times, the most frequent first.

    Words are those of `word_tokenizer`; of equally frequent ones the alphabet decides.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        pieces = SPLITTER.pre_tokenize_str(NORMALIZER.normalize_str(text))
        counts.update(word for word, _ in pieces)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, count in ranked[:most] if count >= least and word not in SPECIAL]


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
    settings = SentenceSettings(pooling, False, max_tokens, False)
    with written_aside(folder.resolve(), overwrite=False) as new:
        new.mkdir(parents=True)
        save_encoder(encoder, new)
        word_tokenizer(words, max_tokens).save(new)
        write_sentence_settings(new, settings, config.hidden_size)
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
