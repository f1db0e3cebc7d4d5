"""Linear layers: every kernel gives float64's results, forward and backward."""

import pytest
import torch
import torch.nn.functional as F
from tolerances import assert_near, assert_near_in_norm

from minbert import linear as kernels
from minbert.config import LINEARS
from minbert.kernel_choice import forward_backward, layer_inputs
from minbert.linear import Linear, linear
from minbert.precision import autocast

SHAPES = [(1, 3, 5), (7, 384, 1152), (300, 64, 48), (2, 1, 1)]
needs_onednn = pytest.mark.skipif(not kernels.has_onednn(), reason="this PyTorch lacks oneDNN")


case = layer_inputs


def relative_error(found, exact):
    return ((found.double() - exact.double()).norm() / exact.double().norm()).item()


@pytest.mark.numeric
@needs_onednn
@pytest.mark.parametrize("kernel", LINEARS)
@pytest.mark.parametrize("shape", SHAPES)
def test_output_and_gradients_are_those_of_float64(kernel, shape):
    tokens, inputs, outputs = shape
    terms = (inputs + 1, outputs, tokens, tokens)  # of the output, and gradients of x, W and b
    exact = forward_backward("mkl", *(t.double() for t in case(*shape)))
    for found, expected, count in zip(
        forward_backward(kernel, *case(*shape)), exact, terms, strict=True
    ):
        assert found.dtype == torch.float32
        assert_near_in_norm(found, expected, count)


@pytest.mark.numeric
@needs_onednn
def test_onednn_computes_only_required_gradients(monkeypatch):
    calls = []
    product = kernels.onednn
    monkeypatch.setattr(kernels, "onednn", lambda *a: calls.append(a) or product(*a))
    x, weight, bias, grad = case(5, 4, 3)
    linear(x.requires_grad_(), weight, bias, "onednn").backward(grad)
    assert len(calls) == 2  # the output and x's gradient: none for the weights, as SMART needs it
    assert_near(x.grad, grad @ weight, terms=3)


@pytest.mark.numeric
@pytest.mark.parametrize("shape", SHAPES)
def test_rounded_products_are_those_of_bfloat16(shape):
    """Against float64 products of the rounded numbers: one rounding of the result remains."""
    x, weight, bias, grad = (t.bfloat16() for t in case(*shape))
    inputs = [t.clone().requires_grad_() for t in (x, weight, bias)]
    output = kernels.rounded(*inputs)
    found = [output, *torch.autograd.grad(output, inputs, grad)]
    wide = [t.double().requires_grad_() for t in (x, weight, bias)]
    exact = F.linear(*wide)
    for ours, expected in zip(
        found, [exact, *torch.autograd.grad(exact, wide, grad.double())], strict=True
    ):
        assert ours.dtype == torch.bfloat16
        assert relative_error(ours, expected) <= 2**-8


@pytest.mark.numeric
@pytest.mark.parametrize("native", [True, False])
def test_autocast_keeps_master_weights_and_their_gradients_in_float32(native, monkeypatch):
    monkeypatch.setattr(kernels, "has_bfloat16", lambda: native)
    layer = Linear(8, 4)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    x = torch.randn(6, 8, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(x)
    assert output.dtype == torch.bfloat16
    output.float().sum().backward()
    for tensor in (x, layer.weight, layer.bias):
        assert tensor.grad.dtype == torch.float32
    assert relative_error(layer.weight.grad, x.detach().sum(0).expand(4, 8)) <= 2**-6


@pytest.mark.parametrize("enabled", [True, False])
def test_products_follow_the_weights_inside_an_autocast_of_the_caller(enabled):
    layer, x = torch.nn.Linear(8, 4), torch.ones(2, 8)
    found = []
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        for _ in range(2):
            with autocast(torch.device("cpu"), "bf16"):
                found.append(layer(x).detach())
            with torch.no_grad():
                layer.weight += 1
    assert (found[1] - found[0] > 4).all()


def test_bfloat16_products_do_without_a_kernel_of_onednn(monkeypatch):
    def refused(*args):
        raise RuntimeError("could not create a primitive descriptor")

    x, weight, bias, _ = (t.bfloat16() for t in case(5, 4, 3))
    kernels.has_onednn_bfloat16.cache_clear()
    with monkeypatch.context() as limited:
        limited.setattr(kernels, "onednn", refused)
        assert torch.equal(kernels.product(x, weight, bias, "mkl"), F.linear(x, weight, bias))
        assert kernels.activated_product(x, weight, bias, "mkl", "gelu") is None
    kernels.has_onednn_bfloat16.cache_clear()
