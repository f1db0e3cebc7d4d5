"""Token ids equal those of transformers, from every layout of files."""

import json
from contextlib import nullcontext

import numpy as np
import peer_models
import pytest

from common.errors import Notice
from minbert import tokenizer
from minbert.tokenizer_files import load_tokenizer

TEXTS = [
    *peer_models.SENTENCES,
    *peer_models.CORPUS,
    "  two  spaces\tand a tab\n",
    "don't [MASK] the [SEP] cat",
    "CAFÉ",
    "\u0000control\u200b and \ufffd",
    "a" * 101,
]


def rows(tokens):
    bounds = zip(tokens.offsets, tokens.offsets[1:], strict=False)
    return [tokens.ids[begin:end].tolist() for begin, end in bounds]


@pytest.fixture
def folder(tmp_path):
    """A folder for tokenizer files only."""
    (tmp_path / "tokenizer").mkdir()
    return tmp_path / "tokenizer"


def peer_tokenizer(folder, lower):
    from transformers import BertTokenizer

    return BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=lower)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("single_file", [True, False])
def test_wordpiece_equals_transformers(folder, lower, single_file):
    peer_models.write_wordpiece(folder, lower)
    peer = peer_tokenizer(folder, lower)
    if single_file:
        peer.save_pretrained(folder)
        (folder / "vocab.txt").unlink(missing_ok=True)
        assert (folder / "tokenizer.json").exists()
    ours = load_tokenizer(folder, "bert", max_tokens=30)
    expected = peer(TEXTS, truncation=True, max_length=30)["input_ids"]
    assert rows(ours(TEXTS)) == expected
    assert max(map(len, expected)) == 30
    assert (rows(ours(["Café"])) == rows(ours(["cafe"]))) == lower


@pytest.mark.parametrize(
    "settings",
    [{"do_lower_case": False}, {"strip_accents": False}, {"tokenize_chinese_chars": False}],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_beside_tokenizer_json_count_as_in_transformers(folder, settings):
    from transformers import AutoTokenizer

    peer_models.write_wordpiece(folder)
    peer_tokenizer(folder, lower=True).save_pretrained(folder)
    (folder / "vocab.txt").unlink(missing_ok=True)
    texts = [*TEXTS, "a dog barked! at the cat, Café"]
    plain = rows(load_tokenizer(folder, "bert", 30)(texts))
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    (folder / "config.json").write_text('{"model_type": "bert"}')
    expected = AutoTokenizer.from_pretrained(folder)(texts, truncation=True, max_length=30)
    ours = load_tokenizer(folder, "bert", 30)
    assert rows(ours(texts)) == expected["input_ids"] != plain
    ours.save(folder)
    saved = AutoTokenizer.from_pretrained(folder)(texts, truncation=True, max_length=30)
    assert saved["input_ids"] == expected["input_ids"]


@pytest.mark.parametrize("cased", [True, False])
def test_a_vocabulary_with_capitals_is_read_cased_unless_a_setting_says_else(folder, cased):
    from transformers import AutoTokenizer

    pieces = [one for one in peer_models.PIECES if cased or one == one.lower() or one[0] == "["]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    (folder / "config.json").write_text('{"model_type": "bert"}')
    with pytest.warns(Notice, match="words have capitals") if cased else nullcontext():
        ours = load_tokenizer(folder, "bert", 30)
    peer = peer_tokenizer(folder, lower=not cased)
    assert rows(ours(TEXTS)) == peer(TEXTS, truncation=True, max_length=30)["input_ids"]
    ours.save(folder)
    assert AutoTokenizer.from_pretrained(folder)(["The"])["input_ids"] == rows(ours(["The"]))


def test_byte_level_bpe_from_two_files_equals_the_single_file(tmp_path, folder):
    from transformers import RobertaTokenizer

    one, two = tmp_path, folder
    peer_models.write_bpe(one, single_file=True)
    peer_models.write_bpe(two, single_file=False)
    from_one, from_two = (load_tokenizer(f, "roberta", 30)(TEXTS) for f in (one, two))
    assert rows(from_one) == rows(from_two)
    peer = RobertaTokenizer(vocab=str(two / "vocab.json"), merges=str(two / "merges.txt"))
    assert rows(from_two) == peer(TEXTS, truncation=True, max_length=30)["input_ids"]
    pairs = TEXTS[::-1]
    joined = load_tokenizer(two, "roberta", 30)(TEXTS, pairs)
    assert rows(joined) == peer(TEXTS, pairs, truncation=True, max_length=30)["input_ids"]
    assert not joined.segments.any()  # RoBERTa has one segment


def test_truncation_and_padding_are_neither_saved_nor_taken_from_a_file(folder):
    peer_models.write_wordpiece(folder)
    tokenizer = load_tokenizer(folder, "bert", 7)
    tokenizer.save(folder)
    saved = json.loads((folder / "tokenizer.json").read_text())
    assert saved["truncation"] is None
    assert saved["padding"] is None
    assert tokenizer(TEXTS).lengths.max() == 7
    assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 7
    tokenizer.backend.enable_padding(length=128)
    tokenizer.backend.save(str(folder / "tokenizer.json"))  # as others save them
    again = load_tokenizer(folder, "bert", 30)(TEXTS)
    assert (again.lengths.min(), again.lengths.max()) == (2, 30)


def test_lower_is_applied_before_the_tokenizer(folder):
    peer_models.write_wordpiece(folder, lower=False)
    plain, lowered = (load_tokenizer(folder, "bert", 30, lower) for lower in (False, True))
    assert rows(lowered(["The Cat"])) == rows(plain(["the cat"]))
    assert rows(lowered(["The"], ["Cat"])) == rows(plain(["the"], ["cat"]))


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("chunk", [3, 1000])
def test_texts_longer_than_the_limit_are_marked_as_truncated(folder, monkeypatch, paired, chunk):
    monkeypatch.setattr(tokenizer, "CHUNK", chunk)
    peer_models.write_wordpiece(folder)
    texts = [*TEXTS, *(f"{'cat ' * n}" for n in range(20))]
    pairs = [texts[::-1]] if paired else []
    long = load_tokenizer(folder, "bert", 10_000)(texts, *pairs)
    short = load_tokenizer(folder, "bert", 12)(texts, *pairs)
    assert not long.truncated.any()
    assert short.truncated.tolist() == (long.lengths > 12).tolist()
    assert 0 < short.truncated.sum() < len(texts)
    rows = np.array([len(texts) - 1, 0, 3])
    assert short.select(rows).truncated.tolist() == short.truncated[rows].tolist()


@pytest.mark.parametrize("limit", [4, 5, 12, 13])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_pairs_are_joined_as_the_library_does(folder, family, limit):
    write = peer_models.write_wordpiece if family == "bert" else peer_models.write_bpe
    write(folder)
    ours = load_tokenizer(folder, family, limit)
    texts = ["cat " * n + "sleeps" * (n % 2) for n in (0, 1, 2, 4, 5, 6, 7, 11, 13, 40, 41)]
    for first in texts:
        for second in texts:
            exact, (found,) = ours.backend.encode(first, second), ours.encoded([first], [second])
            assert (found.ids, found.type_ids) == (exact.ids, exact.type_ids)
            assert bool(found.overflowing) == bool(exact.overflowing)
