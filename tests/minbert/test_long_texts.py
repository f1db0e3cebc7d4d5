"""Long texts: the tokens of head and tail, and chunks that are pooled like one text."""

import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import peer_models
import pytest
import torch
from tolerances import assert_near, encoder_terms

from common.errors import EncoderError, TruncationWarning
from minbert import BiEncoder
from minbert.batching import TokenLists, pack
from minbert.bilstm import random_bilstm
from minbert.config import BiLSTMConfig
from minbert.long_texts import MOST_CHUNKS, beginning, head_and_tail, split_in_chunks
from minbert.pooling import POOLINGS
from minbert.sentences import portions, windows
from minbert.tokenizer import Tokenizer
from minbert.tokenizer_files import load_tokenizer
from minbert.words import word_tokenizer

LIMIT = 12
WORDS = ["the", "cat", "sleeps", "while", "a", "dog", "runs", "in", "the", "old", "park"]
TEXTS = [" ".join(WORDS[i % len(WORDS)] for i in range(n)) for n in (3, 40, 0, 10, 11, 21, 150)] + [
    "[CLS] a literal [SEP] token <s> </s>",
    "naïve café 🙂 日本語 " * 9,
]


@pytest.fixture(params=["wordpiece", "bpe", "words"])
def make(request, tmp_path):
    """`make(max_tokens, long)` returns a tokenizer of one of three families."""
    if request.param == "wordpiece":
        peer_models.write_wordpiece(tmp_path)
        return lambda limit, long: load_tokenizer(tmp_path, "bert", limit, long=long)
    if request.param == "bpe":
        peer_models.write_bpe(tmp_path)
        return lambda limit, long: load_tokenizer(tmp_path, "roberta", limit, long=long)
    backend = word_tokenizer(WORDS, 1_000).backend
    return lambda limit, long: Tokenizer(backend.from_str(backend.to_str()), limit, long=long)


def rows(tokens):
    return [tokens.ids[begin:end].tolist() for begin, end in pairwise(tokens.offsets)]


def inner(row):
    return row[1:-1]  # without the special tokens of these families


def test_head_and_tail_are_the_first_quarter_and_the_rest_from_the_end(make):
    whole, found = rows(make(10_000, "head")(TEXTS)), make(LIMIT, "head-tail")(TEXTS)
    for row, part in zip(whole, rows(found), strict=True):
        long = len(row) > LIMIT
        kept = [*inner(row)[:3], *inner(row)[-7:]] if long else inner(row)  # 10 tokens fit
        assert part == [row[0], *kept, row[-1]]
    assert found.truncated.tolist() == [len(row) > LIMIT for row in whole]
    assert found.chunks is None


def test_head_and_tail_of_512_tokens_are_those_of_the_paper():
    (found,), cut = head_and_tail(np.arange(1000), 510)
    assert found.tolist() == [*range(128), *range(1000 - 382, 1000)]
    assert cut


def test_chunks_have_all_tokens_in_order_and_about_equal_lengths(make):
    whole, tokens = rows(make(10_000, "head")(TEXTS)), make(LIMIT, "chunks")(TEXTS)
    assert tokens.chunked == sum(len(row) > LIMIT for row in whole) > 0
    bounds = pairwise(tokens.chunks.offsets)
    for row, text, (begin, end) in zip(whole, rows(tokens), bounds, strict=True):
        lengths = tokens.chunks.lengths[begin:end]
        parts = np.split(np.array(text), np.cumsum(lengths)[:-1])
        assert [token for part in parts for token in inner(part.tolist())] == inner(row)
        assert {(part[0], part[-1]) for part in parts} == {(row[0], row[-1])}
        assert lengths.max() <= LIMIT
        assert np.ptp(lengths) <= 1
        assert len(parts) == max(1, -(-len(inner(row)) // (LIMIT - 2)))
    assert not tokens.truncated.any()


@pytest.mark.parametrize("long", ["head-tail", "chunks"])
def test_texts_that_fit_have_the_same_tokens_in_every_mode(make, long):
    short = [text for text in TEXTS if len(make(10_000, "head")([text]).ids) <= LIMIT]
    head, other = make(LIMIT, "head")(short), make(LIMIT, long)(short)
    assert (head.ids.tobytes(), head.offsets.tobytes()) == (
        other.ids.tobytes(),
        other.offsets.tobytes(),
    )
    assert other.chunks is None
    assert not other.truncated.any()


def test_a_text_above_the_most_chunks_is_cut_and_counted(make):
    tokenizer = make(LIMIT, "chunks")
    tokens = tokenizer(["cat " * 100, "cat " * 5000])
    assert tokens.truncated.tolist() == [False, True]
    assert np.diff(tokens.chunks.offsets)[1] == MOST_CHUNKS
    assert tokens.lengths[1] == MOST_CHUNKS * LIMIT
    assert tokenizer.longest == MOST_CHUNKS * (LIMIT - 2) + 2
    for count, sizes, expected in (
        (0, [0], False),
        (MOST_CHUNKS * 5, [5] * MOST_CHUNKS, False),
        (MOST_CHUNKS * 5 + 1, [5] * MOST_CHUNKS, True),
    ):
        parts, cut = split_in_chunks(np.arange(count), 5)
        assert ([len(part) for part in parts], cut) == (sizes, expected)


def test_selection_and_distinct_texts_keep_the_chunks(make):
    tokens = make(LIMIT, "chunks")([*TEXTS, *TEXTS])
    picked = np.array([6, 0, 1, 15, 6])
    some = tokens.select(picked)
    assert rows(some) == [rows(tokens)[i] for i in picked]
    for place, row in enumerate(picked):
        one = tokens.select(np.array([row]))
        begin, end = some.chunks.offsets[place : place + 2]
        assert some.chunks.lengths[begin:end].tolist() == one.chunks.lengths.tolist()
    first, which = tokens.distinct()
    assert first.tolist() == list(range(len(TEXTS)))
    assert which.tolist() == 2 * first.tolist()


def model_of(kind, bert_original, tmp_path, pooling="mean"):
    if kind == "bilstm":
        config = BiLSTMConfig(len(WORDS) + 5, embedding_size=8, units=6)
        tokenizer = word_tokenizer(WORDS, LIMIT)
        tokenizer = Tokenizer(tokenizer.backend, LIMIT, long="chunks")
        return BiEncoder(random_bilstm(config), tokenizer, pooling).eval()
    folder = shutil.copytree(bert_original, tmp_path / kind)
    return BiEncoder.from_pretrained(folder, pooling, max_tokens=LIMIT, long="chunks")


def parts_of(tokens: TokenLists) -> list[TokenLists]:
    """Each text's chunks as separate sequences."""
    offsets = np.concatenate([[0], np.cumsum(tokens.chunks.lengths)])
    every = TokenLists(tokens.ids, offsets, np.zeros(len(offsets) - 1, bool))
    numbers = np.arange(len(every))
    return [every.select(numbers[i:j]) for i, j in pairwise(tokens.chunks.offsets)]


def by_hand(pooling, vectors, lengths):
    """Pooling of one text from the embeddings of its chunks."""
    if pooling == "mean":
        return np.average(vectors.astype(np.float64), axis=0, weights=lengths)
    return vectors.max(0) if pooling == "max" else vectors[0]  # of the first chunk


@pytest.mark.parametrize("kind", ["transformer", "bilstm"])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_text_is_pooled_from_all_tokens_of_its_chunks(bert_original, tmp_path, kind, pooling):
    model = model_of(kind, bert_original, tmp_path, pooling)
    texts = TEXTS[:7]
    found = model.encode(texts, normalize=False)
    expected = []
    for part in parts_of(model.tokenizer(texts)):
        alone = [
            model.encode_window(model.encoder, part.select(np.array([i]))) for i in range(len(part))
        ]
        expected.append(by_hand(pooling, np.concatenate(alone), part.lengths))
        assert pooling == "cls" or len(part) == 1 or not np.array_equal(expected[-1], alone[0][0])
    assert_near(found, np.stack(expected), encoder_terms(model.encoder.config, 400))


@pytest.mark.parametrize("kind", ["transformer", "bilstm"])
def test_gradients_go_through_all_chunks(bert_original, tmp_path, kind):
    """In float64, against the sum over tokens of chunks that are encoded one by one."""
    model = model_of(kind, bert_original, tmp_path).double()
    tokens = model.tokenizer(TEXTS[:6])
    draw = torch.Generator().manual_seed(0)
    weights = torch.randn(6, model.width, generator=draw, dtype=torch.float64)

    def gradients(loss):
        model.zero_grad()
        loss.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    batch = pack([tokens], np.arange(6))
    pooled = POOLINGS["mean"](model.encoder(batch), batch)
    found = gradients((pooled * weights).sum())
    loss = 0
    for text, part in enumerate(parts_of(tokens)):
        states = [model.encoder(pack([part], np.array([i]))) for i in range(len(part))]
        loss = loss + (torch.cat(states).mean(0) * weights[text]).sum()
    torch.testing.assert_close(found, gradients(loss), rtol=1e-9, atol=1e-12)
    assert found.abs().sum() > 0


def test_both_texts_of_a_pair_are_chunked_in_one_pass(bert_original, tmp_path):
    model = model_of("transformer", bert_original, tmp_path)
    left, right = model.tokenizer(TEXTS[:4]), model.tokenizer(TEXTS[4:8])
    picked = np.array([1, 3, 0])
    batch = pack([left, right], picked)
    assert (batch.examples, batch.encoded.texts) == (3, 1)
    assert batch.encoded.tokens == batch.tokens
    both = batch.split(model.embed(batch))
    terms = encoder_terms(model.encoder.config, 100)
    for one, tokens in zip(both, (left, right), strict=True):
        assert_near(one, model.embed(pack([tokens], picked)), terms)
    noise = torch.zeros(batch.tokens, model.width)
    noise[-1] = 1  # of the last text of the last example
    noisy = batch.split(model.embed(replace(batch, noise=noise)))
    moved = [(one - two).abs().amax(1) > 0 for one, two in zip(noisy, both, strict=True)]
    assert [one.tolist() for one in moved] == [[False] * 3, [False, False, True]]


def test_a_limit_is_that_of_the_positions_at_most(bert_original, tmp_path):
    folder = shutil.copytree(bert_original, tmp_path / "model")
    most = BiEncoder.from_pretrained(folder).encoder.config.max_tokens
    model = BiEncoder.from_pretrained(folder, max_tokens=most)
    assert model.tokenizer(["cat " * 2000]).lengths.tolist() == [most]
    for wrong in (most + 1, 2):
        with pytest.raises(EncoderError, match=f"from 3 to {most}, .*, found {wrong}$"):
            BiEncoder.from_pretrained(folder, max_tokens=wrong)
    model = BiEncoder.from_pretrained(folder, max_tokens=7, long="chunks")
    model.save_pretrained(tmp_path / "saved")
    saved = BiEncoder.from_pretrained(tmp_path / "saved")
    assert (saved.tokenizer.max_tokens, saved.tokenizer.long) == (7, "head")
    assert saved.tokenizer(TEXTS).lengths.max() == 7
    with pytest.raises(EncoderError, match="expected head for pairs in one sequence, found chunks"):
        model.tokenizer(["a"], ["b"])
    with pytest.raises(EncoderError, match=r"^long: expected one of head, head-tail, chunks"):
        BiEncoder.from_pretrained(folder, long="tail")


def test_the_warning_counts_texts_above_all_chunks(bert_original, tmp_path):
    model = model_of("transformer", bert_original, tmp_path)
    longest = model.tokenizer.longest
    with pytest.warns(TruncationWarning, match=rf"1 of 3 sentences is longer than {longest} tok"):
        model.encode(["cat", "cat " * 100, "cat " * longest])


def test_portions_and_windows_are_limited_by_characters(monkeypatch):
    monkeypatch.setattr("minbert.sentences.AT_ONCE", 10)
    texts = ["abc", "d" * 9, "e", "f" * 30, "", "g"]
    assert [texts[one] for one in portions(3, texts)] == [texts[:2], texts[2:4], texts[4:]]
    assert [texts[one] for one in portions(1, texts)] == [[text] for text in texts]
    assert texts[next(portions(9, texts, ["h" * 9] * 6))] == texts[:1]
    read = []

    def source():
        for text in texts:
            read.append(text)
            yield text

    first = next(windows(source(), 10, len, 12))
    assert first == read == texts[:2]  # nothing is read ahead


@pytest.mark.parametrize("long", ["head", "head-tail", "chunks"])
def test_only_ends_of_a_very_long_text_are_tokenised(make, monkeypatch, long):
    """They are ample or not, with words and white space of any kind, or without any."""
    draw = np.random.default_rng(0)
    spaces, words = [" ", "  ", "\n", "\t ", "\u3000 ", "\r\n"], [*WORDS, "Σ", "é\u0301", "!", "  "]
    texts = [
        "".join(draw.choice(words) + draw.choice(spaces) for _ in range(draw.integers(0, 900)))
        for _ in range(60)
    ]
    texts += ["日本" * 500, " " * 3000, " " * 3000 + "the cat " * 9, "a" * 3000, "cat\n" * 900]
    tokenizer = make(LIMIT, long)
    tokenizer.lower = True
    for module in ("long_texts", "tokenizer"):
        monkeypatch.setattr(f"minbert.{module}.MOST_CHUNKS", 2)
    monkeypatch.setattr("minbert.tokenizer.AMPLE", 1 << 20)
    expected = tokenizer(texts)
    lengths = []
    for ample in (1, 3, 8):
        monkeypatch.setattr("minbert.tokenizer.AMPLE", ample)
        found = tokenizer(texts)
        assert rows(found) == rows(expected)
        assert found.truncated.tolist() == expected.truncated.tolist()
        lengths.append([len(beginning(text, ample * tokenizer.longest)) for text in texts])
    assert min(map(sum, lengths)) < max(map(sum, lengths)) < sum(map(len, texts))
