"""Embeddings: those of sentence-transformers, which opens saved folders; windows, threads."""

import warnings

import numpy as np
import pandas
import peer_models
import pytest
import torch
from tolerances import assert_near, encoder_terms

from common.errors import EncoderError, Notice
from minbert import BiEncoder, bi_encoder
from minbert.pooling import POOLINGS
from minbert.sources import find_folder

# One of TEXTS is longer than the limit.
pytestmark = pytest.mark.filterwarnings("ignore::common.errors.Notice")

KINDS = ("BertModel", "BertForMaskedLM", "RobertaModel", "XLMRobertaModel")
TOLERANCE = 1e-5  # what the README says; `rounding` of the longest sums would allow more
TEXTS = [
    "A cat sleeps.",
    "",
    "Long: " + "the quick brown fox jumps over the lazy dog " * 60,
    "Zoë's café serves crème brûlée 🙂🚀",
    "日本語のテキスト",
    "x " * 254 + "exactly at the limit",
    "\tTabs\nand  newlines ",
    "A CAT SLEEPS.",
] + [f"sentence {i} " + "word " * (i % 23) for i in range(70)]


def terms(model, texts=TEXTS):
    return encoder_terms(model.encoder.config, int(model.tokenizer(texts).lengths.max()))


def cosines(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def peer_states(folder, inputs):
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**inputs).last_hidden_state


@pytest.mark.slow
def test_minilm_equals_sentence_transformers(minilm):
    from sentence_transformers import SentenceTransformer

    ours = minilm.encode(TEXTS, normalize=True)
    theirs = SentenceTransformer(str(find_folder("minilm")), device="cpu").encode(TEXTS)
    assert ours.dtype == np.float32
    assert minilm.tokenizer(TEXTS).lengths.max() == 256
    np.testing.assert_allclose(ours, theirs, atol=TOLERANCE, rtol=0)


@pytest.mark.numeric
@pytest.mark.parametrize("pooling", POOLINGS)
def test_bfloat16_stays_close_and_leaves_the_encoder_as_it_was(bert_original, pooling):
    model = BiEncoder.from_pretrained(bert_original, pooling=pooling)
    full = model.encode(peer_models.SENTENCES)
    model.train()
    half = model.encode(peer_models.SENTENCES, precision="bf16")
    assert half.dtype == np.float32
    assert not np.array_equal(full, half)
    assert cosines(full, half).min() >= 0.999
    assert model.training
    np.testing.assert_array_equal(model.encode(peer_models.SENTENCES), full)


@pytest.mark.parametrize(("window", "budget"), [(1, 10**6), (7, 100), (1000, 1), (1000, 10**6)])
def test_windows_and_batches_do_not_change_the_embeddings(tiny, monkeypatch, window, budget):
    expected = tiny.encode(TEXTS)
    monkeypatch.setattr(bi_encoder, "WINDOW", window)
    monkeypatch.setattr(bi_encoder, "batch_tokens", lambda device: budget)
    parts = list(tiny.encode_stream(iter(TEXTS)))
    assert [len(part) for part in parts[:-1]] == [window] * (len(parts) - 1)
    assert_near(np.concatenate(parts), expected, terms(tiny))
    assert np.array_equal(np.concatenate(parts), tiny.encode(TEXTS))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lower", [True, False])
def test_transformers_and_we_find_the_same_model_in_a_saved_folder(tmp_path, kind, lower):
    from transformers import AutoTokenizer

    original, saved, twice = (tmp_path / name for name in ("original", "saved", "twice"))
    peer_models.save(original, kind, lower=lower, single_file=lower)
    model = BiEncoder.from_pretrained(original, pooling="max")
    model.save_pretrained(saved)
    inputs = peer_models.padded(model.tokenizer(TEXTS), model.encoder.config.pad_id)
    assert torch.equal(peer_states(original, inputs), peer_states(saved, inputs))
    peer = AutoTokenizer.from_pretrained(saved)
    theirs = peer(TEXTS, padding=True, truncation=True, return_tensors="pt")
    assert torch.equal(theirs["input_ids"], inputs["input_ids"])
    assert torch.equal(theirs["attention_mask"], inputs["attention_mask"])
    again = BiEncoder.from_pretrained(saved)
    assert again.skipped_tensors == ()
    assert again.encoder.config == model.encoder.config
    assert np.array_equal(again.encode(TEXTS), model.encode(TEXTS))
    for _ in range(2):  # the second time over an existing folder
        again.save_pretrained(str(twice))
    for file in (f for f in saved.rglob("*") if f.is_file()):
        assert file.read_bytes() == (twice / file.relative_to(saved)).read_bytes(), file.name


def test_any_sequence_of_strings_is_encoded(tiny):
    column = pandas.Series(TEXTS, index=range(5, 5 + len(TEXTS)))
    expected = tiny.encode(TEXTS)
    for sentences in (column, column.to_numpy(), tuple(TEXTS), iter(TEXTS)):
        np.testing.assert_array_equal(tiny.encode(sentences), expected)
    with pytest.raises(TypeError, match="expected a list of strings, found one DataFrame"):
        tiny.encode(column.to_frame())


@pytest.mark.parametrize("value", [None, float("nan"), 3, ("a", "b"), "\ud800"])
def test_the_row_of_a_wrong_text_is_named(tiny, value, monkeypatch):
    monkeypatch.setattr(bi_encoder, "WINDOW", 4)  # the row counts from the first window
    column = pandas.Series(["a"] * 6 + [value], index=range(10, 17), dtype=object)
    with pytest.raises(TypeError, match=r"at (index )?6\b"):
        tiny.encode(column)


def test_wrong_arguments_are_refused(tiny):
    with pytest.raises(TypeError, match="expected a list of strings, found one str"):
        tiny.encode("one string")
    with pytest.raises(EncoderError, match="pooling: expected one of mean, cls, max, found 'sum'"):
        BiEncoder.from_pretrained("tiny", pooling="sum")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "pooling", "normalize"),
    [("BertModel", "mean", True), ("BertModel", "cls", False), ("RobertaModel", "max", True)],
)
def test_sentence_transformers_opens_a_saved_folder_and_saves_one(
    tmp_path, kind, pooling, normalize
):
    from sentence_transformers import SentenceTransformer

    peer_models.save(tmp_path / "original", kind)
    model = BiEncoder.from_pretrained(tmp_path / "original", pooling, max_tokens=20)
    model.normalize = normalize
    model.save_pretrained(tmp_path / "saved")
    peer = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert peer.max_seq_length == 20
    theirs = peer.encode(peer_models.SENTENCES)
    np.testing.assert_allclose(model.encode(peer_models.SENTENCES), theirs, atol=TOLERANCE, rtol=0)
    peer.save(str(tmp_path / "theirs"))
    for folder in ("saved", "theirs"):
        again = BiEncoder.from_pretrained(tmp_path / folder)
        settings = again.pooling, again.normalize, again.tokenizer.max_tokens
        assert settings == (pooling, normalize, 20)
        found = again.encode(peer_models.SENTENCES)
        np.testing.assert_allclose(found, theirs, atol=TOLERANCE, rtol=0)


def test_truncated_sentences_are_counted_in_one_warning(tiny, monkeypatch):
    monkeypatch.setattr(bi_encoder, "WINDOW", 2)
    limit = tiny.tokenizer.max_tokens
    whole, longer = "x " * (limit - 2), "x " * (limit - 1)
    expected = f"2 of 5 sentences are longer than {limit} tokens and were cut"
    for encode in (tiny.encode, lambda texts: list(tiny.encode_stream(texts))):
        with pytest.warns(Notice) as caught:
            encode([longer, "a", "", whole, longer + "y"])
        assert [str(one.message) for one in caught] == [expected]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny.encode([whole, "a"])
        tiny.encode([])


@pytest.fixture
def two_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_embeddings_do_not_depend_on_the_threads(tiny, two_cores, precision):
    texts = [f"sentence {number} " * (number % 17) for number in range(600)]
    several = tiny.encode(texts, precision)
    torch.set_num_threads(1)
    assert np.array_equal(tiny.encode(texts, precision), several)


def test_autocast_of_the_caller_does_not_change_embeddings(tiny, two_cores):
    for texts in (["one text"], [f"sentence {number} " * 20 for number in range(300)]):
        plain = tiny.encode(texts)
        with torch.autocast("cpu", torch.bfloat16):
            assert np.array_equal(tiny.encode(texts), plain)
