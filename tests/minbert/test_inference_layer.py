"""A layer in inference computes what `Layer` defines, without a graph and without hooks."""

import math
import subprocess
import sys
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch
from random_layers import CONFIG, batch_of, distance, encoder_of

from minbert import bi_encoder as bi_encoders
from minbert import encoder as encoders
from minbert.attention import AttentionLayout
from minbert.bi_encoder import BiEncoder
from minbert.fused_layer import infers
from minbert.linear import has_bfloat16, has_onednn
from minbert.precision import autocast, in_bfloat16
from tests.tolerances import rounding

LENGTHS = (3, 1, 20, 7, 33)


@pytest.fixture
def as_written(monkeypatch):
    """`as_written(encoder, batch)` returns the states of `Layer` as it is written."""

    def states(encoder, batch):
        with monkeypatch.context() as patch, torch.inference_mode():
            patch.setattr(encoders, "fused_dtype", lambda *arguments: None)
            return encoder(batch)

    return states


def inferred(encoder, batch):
    """Return the states, and check that they are those of `inference_layer`."""
    calls = mock.Mock(wraps=encoders.inference_layer)
    with mock.patch.object(encoders, "inference_layer", calls), torch.inference_mode():
        states = encoder(batch)
    assert calls.call_count == len(encoder.layers)
    return states


@pytest.mark.parametrize("kernel", ["mkl", "onednn"])
@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
@pytest.mark.parametrize("lengths", [LENGTHS, (16,) * 4, (150, 2)])
def test_float32_equals_the_layer_as_it_is_written(activation, kernel, lengths, as_written):
    if kernel == "onednn" and not has_onednn():
        pytest.skip("this PyTorch lacks oneDNN")
    encoder, batch = encoder_of(activation=activation).eval(), batch_of(lengths)
    encoder.use_linear(kernel)
    # Two layers, each a chain of sums of at most 150 terms; PyTorch's sums round as much as ours.
    tolerance = 50 * rounding(150)
    assert distance(inferred(encoder, batch), as_written(encoder, batch)) <= tolerance


@pytest.mark.skipif(not has_bfloat16(), reason="this CPU has no bfloat16 instructions")
@pytest.mark.parametrize("converted", [True, False])
def test_bfloat16_is_as_near_to_float32_as_the_layer_as_it_is_written(converted, as_written):
    encoder, batch = encoder_of().eval(), batch_of(LENGTHS)
    exact = as_written(encoder, batch)
    half = in_bfloat16(encoder) if converted else encoder
    with autocast(torch.device("cpu"), "fp32" if converted else "bf16"):
        found, written = inferred(half, batch).float(), as_written(half, batch).float()
    assert 0 < distance(found, exact) <= 2 * distance(written, exact)


@pytest.mark.parametrize("width", [16, 20, 32])
def test_attention_equals_a_loop_over_sequences_and_heads(width):
    from minbert.attention_kernel import attend

    heads, lengths = 3, (5, 1, 17, 16)
    hidden, tokens = heads * width, sum(lengths)
    qkv = torch.randn(tokens, 3 * hidden, generator=torch.Generator().manual_seed(0))
    context = np.full((tokens, hidden), np.nan, np.float32)
    ends = np.cumsum(lengths)
    starts, scale = ends - lengths, np.float32(1 / math.sqrt(width))
    attend(0, 2, qkv.numpy(), starts, np.array(lengths), heads, scale, context)
    attend(2, 4, qkv.numpy(), starts, np.array(lengths), heads, scale, context)
    for begin, end in zip(starts, ends, strict=True):
        parts = qkv[begin:end].double().view(end - begin, 3, heads, width).permute(1, 2, 0, 3)
        query, key, value = parts  # (A, L, D)
        wanted = (query @ key.transpose(1, 2) / math.sqrt(width)).softmax(-1) @ value
        found = torch.from_numpy(context[begin:end]).view(end - begin, heads, width)
        assert distance(found.double(), wanted.transpose(0, 1)) <= 10 * rounding(width)


def test_states_of_earlier_layers_are_kept(as_written):
    encoder, batch = encoder_of().eval(), batch_of(LENGTHS)
    with torch.inference_mode():
        first, last = list(encoder.states(batch))
        assert torch.equal(first, encoder.first_layers(1)(batch))
    assert distance(last, as_written(encoder, batch)) <= 50 * rounding(80)


def test_several_threads_give_the_same_result(as_written):
    encoder, long = encoder_of().eval(), batch_of((20,) * 10)  # 200 rows: three shares
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        states = inferred(encoder, long)
    finally:
        torch.set_num_threads(before)
    assert distance(states, as_written(encoder, long)) <= 50 * rounding(80)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kernel", ["mkl", "onednn"])
def test_a_number_that_is_not_finite_reaches_the_output_of_its_sequence(kernel, value):
    if kernel == "onednn" and not has_onednn():
        pytest.skip("this PyTorch lacks oneDNN")
    encoder, batch = encoder_of().eval(), batch_of(LENGTHS)
    encoder.use_linear(kernel)
    with torch.no_grad():
        encoder.embeddings.word.weight[batch.ids[0], 5] = value
    states, used = inferred(encoder, batch), batch.ids == batch.ids[0]
    touched = torch.isin(batch.sequence, batch.sequence[used])
    assert not states[touched].isfinite().any()
    assert states[~touched].isfinite().all()


def test_a_layer_with_a_graph_or_a_hook_or_few_tokens_is_computed_as_it_is_written(monkeypatch):
    fused = mock.Mock(side_effect=AssertionError("expected no inference layer"))
    monkeypatch.setattr(encoders, "inference_layer", fused)
    encoder, batch = encoder_of().eval(), batch_of(LENGTHS)
    encoder(batch).sum().backward()
    assert encoder.layers[0].up.weight.grad is not None
    seen = []
    with torch.no_grad():
        for layer in encoder.layers:
            layer.up.register_forward_pre_hook(lambda module, inputs: seen.append(module))
        encoder(batch)
        assert seen == [layer.up for layer in encoder.layers]
        encoder = encoder_of().eval()
        with pytest.raises(AssertionError, match="expected no inference layer"):
            encoder(batch)
        encoder.compile_layers("eager")
        encoder(batch)
        encoder = encoder_of().eval()
        encoder(replace(batch, kernels=False))


def test_encode_uses_the_kernels_for_many_tokens_only(monkeypatch):
    model, texts = BiEncoder.from_pretrained("tiny"), ["a cat", "one two three", "a dog sleeps"] * 5
    calls = mock.Mock(wraps=encoders.inference_layer)
    monkeypatch.setattr(encoders, "inference_layer", calls)
    few = model.encode(texts)
    assert not calls.called
    monkeypatch.setattr(bi_encoders, "MANY_TOKENS", 10)
    many = model.encode(texts)
    assert calls.called
    assert np.linalg.norm(many - few) <= 100 * rounding(512) * np.linalg.norm(few)


def test_the_last_window_of_a_call_is_computed_as_the_others(monkeypatch):
    model, texts = BiEncoder.from_pretrained("tiny"), ["a cat", "one two three"] * 4
    calls = mock.Mock(wraps=encoders.inference_layer)
    monkeypatch.setattr(encoders, "inference_layer", calls)
    monkeypatch.setattr(bi_encoders, "WINDOW", 6)
    monkeypatch.setattr(bi_encoders, "MANY_TOKENS", 20)
    model.encode(texts)  # 27 tokens, then 9
    assert calls.call_count == 2 * len(model.encoder.layers)


@pytest.mark.parametrize("module", ["dropout", "attention.dropout"])
def test_active_dropout_in_evaluation_is_that_of_the_layer_as_it_is_written(module):
    layer = encoder_of(hidden_dropout=0.1, attention_dropout=0.1).eval().layers[0]
    layout = AttentionLayout(batch_of(LENGTHS), CONFIG.num_heads)
    with torch.no_grad():
        assert infers(layer, layout)
        layer.get_submodule(module).train()
        assert not infers(layer, layout)


def test_few_sentences_are_encoded_without_numba():
    encode = "BiEncoder.from_pretrained('tiny').encode(['a'] * 300)"
    code = f"import sys; from minbert import BiEncoder; {encode}; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
