"""Smaller embeddings: first dimensions, and states after earlier layers, of any encoder."""

import copy
import json

import numpy as np
import peer_models
import pytest
import torch
from tolerances import assert_near, encoder_terms

from common.errors import EncoderError
from minbert.batching import pack
from minbert.bi_encoder import BiEncoder
from minbert.bilstm import BiLSTM
from minbert.sizes import Size, Sizes, trained_sizes
from minbert.words import build_bilstm

TEXTS = ["A cat sleeps.", "The sun is up, and it will not go down.", "no", ""]


@pytest.fixture(scope="module")
def bilstm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bilstm")
    build_bilstm(folder, TEXTS, units=8, num_layers=2, embedding_size=12)
    return folder


@pytest.fixture
def deep(tmp_path):
    """The folder of an encoder with four layers, and the same encoder in transformers."""
    peer = peer_models.save(tmp_path / "deep", "BertModel", num_hidden_layers=4)
    return tmp_path / "deep", peer


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("width", [1, 7, 32])
def test_a_width_keeps_the_first_dimensions(tiny, precision, width):
    whole = tiny.encode(TEXTS, precision, normalize=False)
    found = tiny.encode(TEXTS, precision, normalize=False, width=width)
    np.testing.assert_array_equal(found, whole[:, :width])
    unit = tiny.encode(TEXTS, precision, normalize=True, width=width)
    expected = found / np.linalg.norm(found.astype(np.float64), axis=1, keepdims=True)
    assert_near(unit, expected, width + 2)


@pytest.mark.numeric
@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@torch.no_grad()
def test_layers_are_the_states_that_transformers_has_there(deep, layers, pooling):
    folder, peer = deep
    model = BiEncoder.from_pretrained(folder, pooling)
    tokens = model.tokenizer(peer_models.SENTENCES)
    inputs = peer_models.padded(tokens)
    states = peer(**inputs, output_hidden_states=True).hidden_states[layers]
    expected = []
    for text, mask in zip(states, inputs["attention_mask"].bool(), strict=True):
        own = text[mask]
        by_name = {"mean": own.mean(0), "cls": own[0], "max": own.amax(0)}
        expected.append(by_name[pooling])
    found = model.encode(peer_models.SENTENCES, normalize=False, layers=layers)
    config = model.encoder.config
    assert_near(found, torch.stack(expected), encoder_terms(config, int(tokens.lengths.max())))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_later_layers_are_not_computed(deep, precision):
    model, folder = BiEncoder.from_pretrained(deep[0]), deep[0].parent / "three"
    expected = model.encode(TEXTS, precision, layers=3)
    model.smaller(layers=3).save_pretrained(folder)
    stored = BiEncoder.from_pretrained(folder)
    assert stored.size == Size(3, 32)
    np.testing.assert_array_equal(stored.encode(TEXTS, precision), expected)
    with torch.no_grad():
        for parameter in model.encoder.layers[3].parameters():
            parameter.fill_(float("nan"))
    np.testing.assert_array_equal(model.encode(TEXTS, precision, layers=3), expected)
    assert np.isnan(model.encode(TEXTS, precision)).all()


def test_one_pass_gives_the_states_of_every_exit(deep):
    model = BiEncoder.from_pretrained(deep[0])
    batch = pack([model.tokenizer(TEXTS)], np.arange(len(TEXTS)))
    found = model.pooled(model.encoder, batch, exits=(4, 1, 3))
    for layers, one in zip((4, 1, 3), found, strict=True):
        assert torch.equal(one, model.smaller(layers=layers).embed(batch))


def test_width_and_layers_go_together_and_leave_the_encoder_unchanged(tiny):
    model = copy.deepcopy(tiny).train()
    small = model.smaller(8, 1)
    assert small.size == Size(1, 8)
    found = small.encode(TEXTS)
    assert all(part.training for part in model.modules())
    np.testing.assert_array_equal(found, model.encode(TEXTS, layers=1)[:, :8])
    np.testing.assert_array_equal(model.encode(TEXTS, width=8, layers=1), found)
    (window,) = small.encode_stream(TEXTS)
    np.testing.assert_array_equal(window, found)
    assert small.encode([]).shape == (0, 8)
    assert model.size == Size(2, 32)
    assert small.encoder.layers[0] is model.encoder.layers[0]


def test_a_bilstm_has_widths_and_no_exits(bilstm):
    model = BiEncoder.from_pretrained(bilstm)
    assert isinstance(model.encoder, BiLSTM)
    np.testing.assert_array_equal(model.encode(TEXTS, width=5), model.encode(TEXTS)[:, :5])
    with pytest.raises(EncoderError, match="layers: expected a transformer, found a BiLSTM"):
        model.encode(TEXTS, layers=1)


@pytest.mark.parametrize("value", [0, -1, 33, 1.0, True, "8"])
@pytest.mark.parametrize(("key", "most"), [("width", 32), ("layers", 2)])
def test_a_size_that_the_encoder_does_not_have_is_refused(tiny, key, most, value):
    with pytest.raises(EncoderError) as caught:
        tiny.encode(TEXTS, **{key: value})
    message = f"{key}: expected from 1 to {most}, the "
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith(f"of the encoder, found {value!r}")


def test_only_the_complete_width_is_saved(tiny, tmp_path):
    with pytest.raises(EncoderError, match="save: expected the complete width 32, found 8"):
        tiny.smaller(8).save_pretrained(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_trained_sizes_contain_the_complete_one_and_begin_with_it():
    complete = Size(6, 384)
    assert trained_sizes((), (), complete) == Sizes()
    assert trained_sizes((64, 128), (), complete) == Sizes((384, 128, 64))
    assert trained_sizes((384,), (2, 6, 4), complete) == Sizes((384,), (6, 4, 2))
    with pytest.raises(EncoderError, match="exits: expected from 1 to 6"):
        trained_sizes((), (7,), complete)


def test_a_folder_keeps_the_sizes_that_its_encoder_was_trained_for(tiny, tmp_path):
    model = copy.deepcopy(tiny)
    model.sizes = Sizes((32, 16, 8), (2, 1))
    model.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "sizes.json").read_text()) == {
        "widths": [32, 16, 8],
        "exits": [2, 1],
    }
    assert BiEncoder.from_pretrained(tmp_path).sizes == model.sizes
    model.smaller(layers=1).save_pretrained(tmp_path)
    assert BiEncoder.from_pretrained(tmp_path).sizes == Sizes((32, 16, 8), (1,))
    assert model.smaller(16).sizes == Sizes((16, 8), (2, 1))
    tiny.save_pretrained(tmp_path)
    assert not (tmp_path / "sizes.json").exists()
    assert BiEncoder.from_pretrained(tmp_path).sizes == Sizes()
