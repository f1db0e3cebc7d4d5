"""The BiLSTM against PyTorch's padded LSTM; word vocabularies, vectors, invalid files."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from common.errors import EncoderError
from minbert import BiEncoder
from minbert.batching import pack
from minbert.bilstm import random_bilstm
from minbert.config import BiLSTMConfig
from minbert.words import SPECIAL, build_bilstm, build_vocabulary, read_vectors, word_tokenizer

TEXTS = ["The cat sleeps.", "A dog, a cat; the dog!", "", "cat"]


@pytest.mark.numeric
@pytest.mark.parametrize("layers", [1, 2])
def test_states_and_gradients_are_those_of_single_sequences(layers):
    """Each sequence through PyTorch's own stack by itself: nothing is packed there."""
    encoder = random_bilstm(BiLSTMConfig(30, 5, 4, layers, dropout=0.0))
    tokens = word_tokenizer([*build_vocabulary(TEXTS)], 50)(TEXTS)
    batch = pack([tokens], np.arange(len(TEXTS)))
    found = encoder(batch)
    plain = nn.LSTM(5, 4, layers, bidirectional=True)
    for number, layer in enumerate(encoder.layers):
        for name, value in layer.state_dict().items():
            getattr(plain, name.replace("l0", f"l{number}")).data.copy_(value)
    words = encoder.embeddings.word(batch.ids).split(batch.lengths.tolist())
    expected = torch.cat([plain(sequence[:, None])[0][:, 0] for sequence in words])
    torch.testing.assert_close(found, expected)
    weight = encoder.embeddings.word.weight
    one, other = (
        torch.autograd.grad(states.square().sum(), weight)[0] for states in (found, expected)
    )
    torch.testing.assert_close(one, other)


def test_words_are_ranked_and_unknown_ones_are_one_token(monkeypatch):
    counts = build_vocabulary(TEXTS)
    assert [*counts][:2] == ["cat", "a"]
    assert set(counts) == {"cat", "a", "the", "dog", "sleeps", ".", ",", ";", "!"}
    assert [word for word, count in counts.items() if count > 1] == ["cat", "a", "dog", "the"]
    monkeypatch.setattr("minbert.words.MOST_WORDS", 1)
    assert [*build_vocabulary(TEXTS)] == ["cat"]
    tokens = word_tokenizer(["cat", "dog"], 50)(["The CAT and", ""])
    unknown, first, last = (SPECIAL.index(name) for name in ("[UNK]", "[CLS]", "[SEP]"))
    assert tokens.ids.tolist() == [first, unknown, len(SPECIAL), unknown, last, first, last]


@pytest.fixture
def vectors(tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text("the 0.5 -0.5 1.5\ncat 1 2 3\nelsewhere 7 7 7\n. 0 0 1e-2\n", "utf-8")
    return file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't; it’s CAN'T", "i do n't ; it 's ca n't"),
        ("do n't , it 's", "do n't , it 's"),
        ("Mr. Smith of the U.S. had 3.5 of 1,000 .", "mr. smith of the u.s. had 3.5 of 1,000 ."),
        ("a well-made café ... -LRB- no -- ", "a well-made café ... -lrb- no --"),
        ("北京", "北 京"),
    ],
)
def test_texts_are_split_as_in_glove(text, words):
    assert sorted(build_vocabulary([text])) == sorted(set(words.split()))
    tokens = word_tokenizer(words.split(), 50)([text])
    names = dict(enumerate((*SPECIAL, *words.split())))
    assert [names[number] for number in tokens.ids[1:-1]] == words.split()


def test_words_are_initialised_from_vectors(vectors, tmp_path):
    summary = build_bilstm(tmp_path / "out", TEXTS, vectors, units=4)
    # Words that come once are left out, unless they have a vector.
    assert summary.startswith("5 words, 60% of them with a vector, 1 x 4 units")
    model = BiEncoder.from_pretrained(tmp_path / "out")
    weight = model.encoder.embeddings.word.weight
    vocabulary = json.loads((tmp_path / "out" / "tokenizer.json").read_text())["model"]["vocab"]
    assert weight[vocabulary["cat"]].tolist() == [1, 2, 3]
    assert weight[vocabulary["."]].tolist() == pytest.approx([0, 0, 0.01])
    assert weight[vocabulary["dog"]].std() > 0
    assert "elsewhere" not in vocabulary
    assert (weight.shape[1], model.width) == (3, 8)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"the 1 2\ncat 1\n", "line 2: expected a word and 2 numbers"),
        (b"the 1,5 2\n", "line 1: expected a word and 2 numbers"),
        (b"other 1 2\n", "the file has no vector of any word"),
    ],
)
def test_invalid_vector_files_are_refused(tmp_path, content, expected):
    file = tmp_path / "glove.txt"
    file.write_bytes(content)
    with pytest.raises(EncoderError, match=expected):
        read_vectors(file, ["the", "cat"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("the 1 2\ncat 3 4\nthe 9 9\n", {"the": [1, 2], "cat": [3, 4]}),
        ("the\t1\t2\r\ncat 3 4\r\n", {"the": [1, 2], "cat": [3, 4]}),
        ("the 1 2 3\n. . . 0.3 0.4 0.5\n. 4 5 6\n", {"the": [1, 2, 3], ".": [4, 5, 6]}),
        ("2 3\n2 1 1 1\ncat 1 2 3\n", {"2": [1, 1, 1], "cat": [1, 2, 3]}),
    ],
    ids=["a word twice", "tabs", "several words with a vector", "word2vec's first line"],
)
def test_vectors_are_read_from_files_of_other_forms(tmp_path, content, expected):
    file = tmp_path / "vectors.txt"
    file.write_bytes(content.encode())
    found = read_vectors(file, ["the", "cat", ".", "2"])
    assert {word: vector.tolist() for word, vector in found.items()} == expected


@pytest.fixture
def folder(tmp_path):
    build_bilstm(tmp_path / "bilstm", TEXTS, units=4, embedding_size=6)
    return tmp_path / "bilstm"


def test_a_bilstm_trains_in_a_multi_task_run(folder, tmp_path, capsys):
    import cli

    flags = ["--encoder", str(folder), "--epochs", "1", "--limit", "40", "--lr", "1e-3"]
    output = ["--output", str(tmp_path / "run")]
    assert (
        cli.main(["--mode", "multitask", "--pcgrad", "--smart-weight", "1", *flags, *output]) == 0
    )
    best = tmp_path / "run" / "best"
    assert BiEncoder.from_pretrained(best).encoder.config.units == 4
    flags += ["--precision", "bf16", "--output", str(tmp_path / "half")]
    with pytest.raises(SystemExit, match="2"):
        cli.main(["--mode", "single", "--task", "sst", *flags])
    assert "--precision: expected one of auto, fp32 for a BiLSTM, found" in capsys.readouterr().err
