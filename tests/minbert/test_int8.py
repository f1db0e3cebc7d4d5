"""int8 encoding: products against exact integers, kernels against torch, quality, and choices."""

import copy
import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from minbert import BiEncoder, int8_products, precision
from minbert.batching import pack
from minbert.encoder import ACTIVATION_FUNCTIONS
from minbert.int8 import input_magnitudes, int8_layers, quantized
from minbert.int8_layers import SENTENCES, measure_layers, read_choice, with_kept
from minbert.int8_products import exact_products
from minbert.linear import Linear
from minbert.precision import frozen_copy
from tests.tolerances import assert_near, rounding

int8_kernels = pytest.importorskip("minbert.int8_kernels")
vector_math = pytest.importorskip("minbert.vector_math")
ACTIVATIONS = {
    vector_math.GELU: F.gelu,
    vector_math.TANH_GELU: lambda x: F.gelu(x, approximate="tanh"),
    vector_math.RELU: F.relu,
}


needs_exact_products = pytest.mark.skipif(
    not exact_products(), reason="the sums of int8 products saturate on this CPU"
)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "minbert" / "int8"


def int8_of(model, kept=()):
    """The int8 copy, whatever the speed of its products."""
    encoder = frozen_copy(model.encoder, torch.float32)
    tokens = model.tokenizer(SENTENCES.read_text("utf-8").splitlines())
    quantised = int8_layers(encoder, input_magnitudes(encoder, whole(tokens)))
    return with_kept(encoder, encoder, quantised, kept)


def whole(tokens):
    """All sequences as one batch."""
    return pack([tokens], np.arange(len(tokens)))


def linear_layer(outputs, inputs, seed=0):
    generator = torch.Generator().manual_seed(seed)
    layer = Linear(inputs, outputs)
    layer.weight.data = torch.randn(outputs, inputs, generator=generator)
    layer.bias.data = torch.randn(outputs, generator=generator)
    return layer


def codes_of(states, factors=None):
    factors = np.ones(states.shape[1], np.float32) if factors is None else factors
    codes, scales = np.empty(states.shape, np.int8), np.empty(len(states), np.float32)
    int8_kernels.quantize(states, factors, codes, scales)
    return codes, scales


@given(st.integers(1, 20), st.integers(1, 70), st.integers(0, 9))
@settings(deadline=None, max_examples=25)
def test_codes_times_scales_are_within_half_a_step_of_the_states(tokens, width, seed):
    random = np.random.default_rng(seed)
    states = (random.normal(size=(tokens, width)) * 10.0**seed).astype(np.float32)
    states[0] = 0
    codes, scales = codes_of(states)
    error = np.abs(codes * scales[:, None].astype(np.float64) - states)
    assert (error <= scales[:, None] * (0.5 + 256 * rounding(1))).all()
    assert (np.abs(codes).max(1)[1:] == 127).all()
    assert not codes[0].any()


@needs_exact_products
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("tokens", [1, 3, 40])
def test_a_product_is_the_exact_sum_of_integers(tokens, smooth):
    layer, random = linear_layer(12, 24), np.random.default_rng(1)
    states = random.normal(size=(tokens, 24)).astype(np.float32)
    magnitudes = torch.from_numpy(np.abs(states).max(0)) if smooth else None
    product = quantized(layer, magnitudes)
    codes, scales = codes_of(states, product.factors)
    sums = product(torch.from_numpy(codes), torch.empty(tokens, 12, dtype=torch.int32))
    exact = codes.astype(np.int64) @ product.codes.numpy().astype(np.int64)
    assert np.array_equal(sums, exact)
    # Each of the 24 terms has two factors, both within half a step.
    found = sums * scales[:, None].astype(np.float64) * product.weights + product.bias
    weight = layer.weight.detach().double().numpy() / product.factors
    steps = np.abs(states * product.factors) @ np.ones((24, 12)) * product.weights / 2
    steps += (
        scales[:, None] / 2 * np.abs(weight).sum(1) + 24 * scales[:, None] * product.weights / 4
    )
    wanted = layer(torch.from_numpy(states)).detach().double().numpy()
    assert (np.abs(found - wanted) <= steps * (1 + rounding(24)) + rounding(24) * 10).all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_activation_is_that_of_torch_within_half_a_step(activation):
    random = np.random.default_rng(2)
    sums = random.integers(-40_000, 40_000, size=(30, 48)).astype(np.int32)
    scales = random.uniform(1e-3, 1e-2, 30).astype(np.float32)
    weights, bias = (random.uniform(0.01, 0.02, 48).astype(np.float32) for _ in range(2))
    codes, new = np.empty((30, 48), np.int8), np.empty(30, np.float32)
    int8_kernels.activate(sums, scales, weights, bias, activation, codes, new)
    values = torch.from_numpy(sums * scales[:, None].astype(np.float64) * weights + bias)
    wanted = ACTIVATIONS[activation](values).numpy()
    found = (codes.astype(np.float64) + 128) * new[:, None] - int8_kernels.SHIFT
    assert (np.abs(found - wanted) <= new[:, None] * 0.51 + 1e-6 * np.abs(wanted)).all()


def test_a_product_is_scaled_to_float32():
    random = np.random.default_rng(3)
    sums = random.integers(-40_000, 40_000, size=(5, 12)).astype(np.int32)
    scales = random.uniform(1e-3, 1e-2, 5).astype(np.float32)
    weights, bias = (random.uniform(-0.02, 0.02, 12).astype(np.float32) for _ in range(2))
    found = np.empty((5, 12), np.float32)
    int8_kernels.scaled(sums, scales, weights, bias, found)
    wanted = sums * scales[:, None].astype(np.float64) * weights + bias
    assert_near(found, wanted, 4, np.abs(wanted).max())


def test_nan_reaches_the_output():
    states = np.zeros((2, 3), np.float32)
    states[0, 1] = np.nan
    assert np.isnan(codes_of(states)[1]).tolist() == [True, False]


@needs_exact_products
@pytest.mark.parametrize("name", ["tiny", "minilm"])
def test_int8_is_near_float32_for_texts_of_any_length(name):
    model = BiEncoder.from_pretrained(name)
    texts = ["a", "What is this?", "A much longer text. " * 60, *SENTENCES.read_text().splitlines()]
    exact, encoder = model.encode(texts), int8_of(model)
    found = model.encode_window(encoder, model.tokenizer(texts))
    cosines = F.cosine_similarity(torch.from_numpy(exact), torch.from_numpy(found))
    assert cosines.mean() > 0.998
    assert cosines.min() > 0.985


def test_equal_batches_have_equal_results_and_kept_layers_are_those_of_float32(minilm):
    tokens = minilm.tokenizer(["One sentence.", "Another one, a little longer."])
    plain, kept = int8_of(minilm), int8_of(minilm, range(6))
    batch = pack([tokens], np.arange(2))
    with torch.inference_mode():
        assert torch.equal(plain(batch), plain(batch))
        assert torch.equal(kept(batch), minilm.encoder(batch))


@needs_exact_products
def test_layers_are_kept_until_the_embeddings_are_near_enough(minilm):
    spoilt = copy.deepcopy(minilm)
    with torch.no_grad():  # a few output channels of one layer with very uneven inputs
        layer = spoilt.encoder.layers[3]
        layer.down.weight[:, ::7] *= 300
        layer.up.weight[::7] /= 300
        layer.up.bias[::7] /= 300
    encoder = frozen_copy(spoilt.encoder, torch.float32)
    tokens = spoilt.tokenizer(SENTENCES.read_text("utf-8").splitlines()[:12])
    quantised = int8_layers(encoder, input_magnitudes(encoder, whole(tokens)))
    found = measure_layers(encoder, encoder, quantised, tokens, spoilt.whole)
    assert found.kept == (3,)
    assert found.suffices


@needs_exact_products
def test_the_choice_is_kept_by_the_checksum_of_the_weights(own_cache, monkeypatch):
    monkeypatch.setattr(int8_products, "has_int8", lambda: True)
    model = BiEncoder.from_pretrained("tiny")
    first = model.encode(["a text"], "int8")
    (file,) = own_cache.iterdir()
    assert json.loads(file.read_text())["kept"] == []
    assert read_choice(file, 2) is not None
    for content in ("", "[]", '{"kept": [9]}', '{"kept": "a"}'):
        file.write_text(content)
        assert read_choice(file, 2) is None
    assert np.array_equal(BiEncoder.from_pretrained("tiny").encode(["a text"], "int8"), first)
    with torch.no_grad():
        model.encoder.layers[0].up.weight.add_(0.1)
    assert not np.array_equal(model.encode(["a text"], "int8"), first)
    assert len(list(own_cache.iterdir())) == 2


def test_a_copy_is_made_once_and_anew_after_a_change(own_cache):
    model = BiEncoder.from_pretrained("tiny").train()
    copies = {name: model.encoder_in(name) for name in ("bf16", "int8")}
    assert all(model.encoder_in(name) is one for name, one in copies.items())
    model.encode(["a"], "int8")
    assert model.training
    assert model.encoder.training
    with torch.no_grad():
        model.encoder.embeddings.norm.weight.mul_(1.5)
    assert all(model.encoder_in(name) is not one for name, one in copies.items())


def test_weights_of_any_shape_have_a_checksum():
    scalar, empty = torch.tensor(0.5), torch.zeros(0, 3)
    assert precision.tensor_checksum(scalar) != precision.tensor_checksum(scalar + 1)
    assert precision.tensor_checksum(empty) == 0


def test_a_change_behind_the_back_of_autograd_and_copies_of_the_model(own_cache):
    model = BiEncoder.from_pretrained("tiny")
    first = model.encode(["a text"], "bf16")
    model.encoder.layers[0].up.weight.data.add_(0.1)
    assert not np.array_equal(model.encode(["a text"], "bf16"), first)
    twin = copy.deepcopy(model)
    assert (twin.copies, len(model.copies)) == ({}, 1)
    rows = model.encoder.embeddings.word.weight.data
    before = model.encoder_in("bf16")
    rows[[5, 6]] = rows[[6, 5]]
    assert model.encoder_in("bf16") is not before


def test_the_names_of_activations_are_those_of_the_encoder():
    assert set(vector_math.ACTIVATIONS) == set(ACTIVATION_FUNCTIONS)


def test_without_instructions_the_best_float_copy_is_used(own_cache, monkeypatch, capsys):
    monkeypatch.setattr(int8_products, "has_int8", lambda: False)
    monkeypatch.setattr(precision, "has_bfloat16", lambda: False)
    model = BiEncoder.from_pretrained("tiny")
    assert np.array_equal(model.encode(["a text"], "int8"), model.encode(["a text"]))
    shown = capsys.readouterr()
    assert shown.out == ""  # which has the results of `predict`
    assert shown.err == "note: int8 products are not faster on this CPU; fp32 is used instead\n"


@pytest.mark.parametrize(("seconds", "faster"), [((1.0, 10.0), True), ((1.0, 1.0), False)])
def test_int8_counts_as_faster_only_by_a_margin(seconds, faster, monkeypatch):
    several = iter(seconds)
    monkeypatch.setattr(int8_products, "exact_products", lambda: True)
    monkeypatch.setattr(int8_products, "fastest", lambda run: next(several))
    assert int8_products.has_int8.__wrapped__() == faster
