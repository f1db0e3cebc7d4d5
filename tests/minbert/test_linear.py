"""Linear layers: every product gives float64's results, forward and backward; dropout."""

import pytest
import torch
from tolerances import assert_near_in_norm

from minbert import linear as kernels
from minbert.dropout import Dropout
from minbert.linear import linear

SHAPES = [(1, 3, 5), (7, 384, 1152), (300, 64, 48), (2, 1, 1)]
needs_onednn = pytest.mark.skipif(not kernels.uses_onednn(torch.float32), reason="no oneDNN here")


def case(tokens, inputs, outputs):
    """Draw x, weight, bias, and the gradient of the output, always the same ones."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((tokens, inputs), (outputs, inputs), (outputs,), (tokens, outputs))
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def forward_backward(*tensors, activation="none"):
    """Return the output and the gradients of x, weight and bias."""
    inputs = [tensor.detach().requires_grad_() for tensor in tensors[:3]]
    output = linear(*inputs, activation)
    return [output.detach(), *torch.autograd.grad(output, inputs, tensors[3])]


@pytest.fixture(params=[pytest.param(True, marks=needs_onednn), False], ids=["onednn", "mkl"])
def product(request, monkeypatch):
    """Both products in float32."""
    monkeypatch.setattr(kernels, "uses_onednn", lambda dtype: request.param)


@pytest.mark.numeric
@pytest.mark.usefixtures("product")
@pytest.mark.parametrize("shape", SHAPES)
def test_output_and_gradients_are_those_of_float64(shape):
    tokens, inputs, outputs = shape
    terms = (inputs + 1, outputs, tokens, tokens)  # of the output, and gradients of x, W and b
    exact = forward_backward(*(t.double() for t in case(*shape)))
    for found, expected, count in zip(forward_backward(*case(*shape)), exact, terms, strict=True):
        assert found.dtype == torch.float32
        assert_near_in_norm(found, expected, count)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.001, 0.999])
def test_rate_and_mean_are_those_of_the_rounded_probability(p):
    torch.manual_seed(3)
    layer = Dropout(p)
    x = torch.ones(1000, 997, requires_grad=True)
    y = layer(x)
    rate = min(255, max(1, round(256 * p))) / 256
    assert abs(rate - p) <= 1 / 256
    n = x.numel()
    assert abs((y == 0).double().mean().item() - rate) < 5 * (rate * (1 - rate) / n) ** 0.5
    kept = y[y != 0]
    assert kept.unique().numel() == 1
    assert kept[0].item() == pytest.approx(1 / (1 - rate), rel=1e-6)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert layer.eval()(x) is x
    assert Dropout(0.0)(x) is x
