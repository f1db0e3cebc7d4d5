"""Properties of every encoder: the transformer and the BiLSTM."""

import numpy as np
import pytest
import torch
from tolerances import assert_near, encoder_terms

from minbert import BiEncoder
from minbert.batching import pack
from minbert.pooling import POOLINGS
from minbert.words import build_bilstm

TEXTS = ["A cat sleeps .", "", "word " * 90, "Zoë's café 🙂", "日本語", "\tTabs\nand  lines", "!"]
TEXTS += [f"sentence {i} " + "of words " * (i % 11) for i in range(70)]


@pytest.fixture(scope="module", params=["transformer", "bilstm", "bilstm, three layers"])
def folder(request, tmp_path_factory):
    if request.param == "transformer":
        return "tiny"
    place = tmp_path_factory.mktemp("bilstm")
    layers = 3 if "three" in request.param else 1
    build_bilstm(place, TEXTS, units=8, num_layers=layers, embedding_size=12)
    return place


@pytest.fixture(scope="module")
def model(folder):
    return BiEncoder.from_pretrained(folder)


def terms(model):
    return encoder_terms(model.encoder.config, int(model.tokenizer(TEXTS).lengths.max()))


@pytest.mark.numeric
@pytest.mark.parametrize("pooling", POOLINGS)
def test_embeddings_do_not_depend_on_the_batch(folder, pooling):
    model = BiEncoder.from_pretrained(folder, pooling)
    together = model.encode(TEXTS)
    assert together.shape == (len(TEXTS), model.width)
    order = np.random.default_rng(0).permutation(len(TEXTS))
    moved = model.encode([TEXTS[i] for i in order])
    assert_near(moved, together[order], terms(model))
    for row, text in enumerate(TEXTS[:8]):
        assert_near(model.encode([text])[0], together[row], terms(model))


def test_empty_sentences_and_empty_lists_are_encoded(model):
    assert np.isfinite(model.encode([""])).all()
    nothing = model.encode([])
    assert nothing.shape == (0, model.width)
    assert nothing.dtype == np.float32


@pytest.mark.numeric
@pytest.mark.parametrize("pooling", POOLINGS)
def test_embed_is_encode_with_gradients(folder, pooling):
    model = BiEncoder.from_pretrained(folder, pooling).eval()
    tokens = model.tokenizer(TEXTS)
    embeddings = model.embed(pack([tokens], np.arange(len(tokens))))
    assert embeddings.dtype == torch.float32
    assert_near(embeddings, model.encode(TEXTS), terms(model))
    gradients = torch.autograd.grad(embeddings.square().sum(), list(model.parameters()))
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert model.device.type == "cpu"
