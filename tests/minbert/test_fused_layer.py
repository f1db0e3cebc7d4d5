"""A fused layer computes what `Layer` defines: states, gradients and dropout."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch
from random_layers import batch_of, distance, encoder_of

from minbert import encoder as encoders
from minbert import fused_layer as fused_layers
from minbert.linear import has_bfloat16, has_onednn
from minbert.precision import autocast
from tests.tolerances import rounding

CPU = torch.device("cpu")
LENGTHS = (3, 1, 20, 7, 20)


@pytest.fixture
def unfused(monkeypatch):
    """`unfused()` makes all layers compute as `Layer` is written."""
    return lambda: monkeypatch.setattr(encoders, "fused_dtype", lambda *arguments: None)


def results(encoder, precision="fp32", batch=None):
    """Return the states and the gradients of all parameters, of the first dropout masks."""
    encoder.stream.reset(3)
    encoder.zero_grad()
    with autocast(CPU, precision):
        states = encoder(batch or batch_of(LENGTHS))
    assert states.dtype == torch.float32
    weights = torch.linspace(-1, 1, states.numel()).view_as(states)
    (states * weights).sum().backward()
    return states.detach(), {n: p.grad.clone() for n, p in encoder.named_parameters()}


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
@pytest.mark.parametrize("dropout", [(0.0, 0.0), (0.3, 0.1), (0.1, 1.0)])
def test_float32_equals_the_layer_as_it_is_written(activation, dropout, unfused):
    hidden, attention = dropout
    encoder = encoder_of(
        activation=activation, hidden_dropout=hidden, attention_dropout=attention
    ).train()
    states, gradients = results(encoder)
    unfused()
    wanted, exact = results(encoder)
    # Two layers, each a chain of sums of at most 80 terms; PyTorch's sums round as much as ours.
    tolerance = 50 * rounding(80)
    assert distance(states, wanted) <= tolerance
    largest = max(float(g.norm()) for g in exact.values())
    for name, gradient in exact.items():
        scale = max(float(gradient.norm()), 1e-2 * largest)  # a key's bias has a gradient of 0
        assert float((gradients[name] - gradient).norm()) <= tolerance * scale, name


@pytest.mark.skipif(not has_onednn(), reason="this PyTorch lacks oneDNN")
def test_both_float32_kernels_agree():
    encoder = encoder_of().train()
    states, gradients = results(encoder)
    encoder.use_linear("onednn")
    again, others = results(encoder)
    assert distance(again, states) <= 50 * rounding(80)
    assert distance(others["layers.0.up.weight"], gradients["layers.0.up.weight"]) <= 1e-4


@pytest.mark.skipif(not has_bfloat16(), reason="this CPU has no bfloat16 instructions")
def test_bfloat16_is_as_near_to_float32_as_autocast(unfused, monkeypatch):
    # Masks have the shape of the grid, which bfloat16 rounds up.
    monkeypatch.setattr(encoders, "shape_multiples", lambda x: (64, 8))
    encoder = encoder_of(hidden_dropout=0.1, attention_dropout=0.1).train()
    states, gradients = results(encoder, "bf16")
    unfused()
    autocasted, plain = results(encoder, "bf16")
    wanted, exact = results(encoder)
    assert 0 < distance(states, wanted) <= 2 * distance(autocasted, wanted)
    for name in ("layers.0.attention.qkv.weight", "layers.1.up.bias", "embeddings.position.weight"):
        limit = 2 * distance(plain[name], exact[name]) + 2**-8
        assert distance(gradients[name], exact[name]) <= limit, name


def test_a_kept_graph_gives_the_same_gradient_twice():
    encoder = encoder_of().train()
    states = encoder(batch_of(LENGTHS))
    inputs = list(encoder.layers[0].parameters())
    first = torch.autograd.grad(states.square().sum(), inputs, retain_graph=True)
    second = torch.autograd.grad(states.square().sum(), inputs)
    assert all(map(torch.equal, first, second))


def test_frozen_weights_get_no_gradient_but_the_states_do():
    encoder = encoder_of().train()
    encoder.requires_grad_(False)
    batch = batch_of(LENGTHS)
    noise = torch.zeros(batch.tokens, 48, requires_grad=True)
    encoder.stream.reset(3)
    encoder(replace(batch, noise=noise)).square().sum().backward()
    assert noise.grad is not None
    assert float(noise.grad.norm()) > 0
    assert all(parameter.grad is None for parameter in encoder.parameters())


def test_only_the_trained_parameters_of_a_layer_get_their_gradients():
    encoder = encoder_of().train()
    _, wanted = results(encoder)
    encoder.layers[0].up.requires_grad_(False)
    encoder.layers[1].output_norm.weight.requires_grad_(False)
    encoder.stream.reset(3)
    encoder.zero_grad(set_to_none=True)
    states = encoder(batch_of(LENGTHS))
    (states * torch.linspace(-1, 1, states.numel()).view_as(states)).sum().backward()
    for name, parameter in encoder.named_parameters():
        if parameter.requires_grad:
            assert torch.equal(parameter.grad, wanted[name]), name
        else:
            assert parameter.grad is None


def test_layers_that_cannot_be_fused_are_computed_as_they_are_written(monkeypatch):
    fused = mock.Mock(side_effect=AssertionError("expected no fused layer"))
    monkeypatch.setattr(encoders, "fused_layer", fused)
    encoder = encoder_of().train()
    encoder.eval()(batch_of(LENGTHS))
    encoder.train().double()(batch_of(LENGTHS))
    encoder.bfloat16()(batch_of(LENGTHS))
    long = encoder_of(hidden_dropout=0.0, attention_dropout=0.0).train()
    long(batch_of((150,)))
    monkeypatch.setattr(fused_layers, "has_bfloat16", lambda: False)
    with autocast(CPU, "bf16"):
        encoder.float()(batch_of(LENGTHS))
    with pytest.raises(AssertionError, match="expected no fused layer"):
        encoder(batch_of(LENGTHS))


def test_the_backward_pass_frees_the_graph_and_notices_changed_weights():
    encoder = encoder_of().train()
    states = encoder(batch_of(LENGTHS))
    node = states.grad_fn
    while type(node).__name__ != "FusedLayerBackward":
        node = node.next_functions[0][0]
    assert not [name for name, one in vars(node).items() if isinstance(one, torch.Tensor)]
    states.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = node.saved_tensors
    states = encoder(batch_of(LENGTHS))
    with torch.no_grad():
        encoder.layers[1].output_norm.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        states.sum().backward()


def test_several_threads_give_the_same_result():
    encoder, long = encoder_of().train(), batch_of((20,) * 10)  # 200 rows: three shares
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        states, gradients = results(encoder, batch=long)
        torch.set_num_threads(3)
        again, others = results(encoder, batch=long)
    finally:
        torch.set_num_threads(before)
    assert distance(again, states) <= 50 * rounding(80)
    for name, gradient in gradients.items():  # sums over 200 tokens, which may cancel
        limit = rounding(200) * (200 + float(gradient.norm()))
        assert float((others[name] - gradient).norm()) <= limit, name


@pytest.mark.skipif(not has_bfloat16(), reason="this CPU has no bfloat16 instructions")
def test_weights_in_bfloat16_follow_a_fused_optimiser():
    encoder = encoder_of(hidden_dropout=0.0, attention_dropout=0.0).train()
    before, _ = results(encoder, "bf16")
    torch.optim.AdamW(encoder.layers.parameters(), lr=0.1, fused=True).step()
    after, _ = results(encoder, "bf16")
    wanted, _ = results(encoder)
    assert distance(before, wanted) > 0.1
    assert distance(after, wanted) < 0.05


def test_a_number_that_is_not_finite_reaches_the_output():
    encoder = encoder_of().train()
    for value in (np.nan, np.inf):
        with torch.no_grad():
            encoder.embeddings.word.weight[batch_of(LENGTHS).ids[0], 5] = value
        states = encoder(batch_of(LENGTHS))
        assert not states[: LENGTHS[0]].isfinite().any()
