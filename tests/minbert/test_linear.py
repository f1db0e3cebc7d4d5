"""Linear layers: every kernel gives float64's results, forward and backward."""

import json

import pytest
import torch
import torch.nn.functional as F
from tolerances import assert_near, assert_near_in_norm

from minbert import BiEncoder
from minbert import linear as kernels
from minbert.config import LINEARS
from minbert.linear import (
    HardwareError,
    Linear,
    cache_file,
    choose_linear,
    forward_backward,
    linear,
)

SHAPES = [(1, 3, 5), (7, 384, 1152), (300, 64, 48), (2, 1, 1)]
needs_onednn = pytest.mark.skipif(not kernels.has_onednn(), reason="this PyTorch lacks oneDNN")


case = kernels.layer_inputs


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


def test_mkl_is_used_without_the_private_op(monkeypatch):
    monkeypatch.setattr(kernels, "has_onednn", lambda: False)
    x, weight, bias, _ = case(5, 4, 3)
    assert torch.equal(linear(x, weight, bias, "onednn"), F.linear(x, weight, bias))
    assert choose_linear().kernel == "mkl"
    with pytest.raises(HardwareError, match="expected a PyTorch that has this kernel"):
        choose_linear("onednn")
    for choose in (choose_linear, lambda name: BiEncoder.from_pretrained("tiny", linear=name)):
        with pytest.raises(HardwareError, match="expected auto, mkl, onednn, found 'fast'"):
            choose("fast")


def chosen_with(monkeypatch, measured, clock):
    """The kernel of a machine where `measured` moves the clock, and both kernels agree."""
    monkeypatch.setattr(kernels, "agrees", lambda case: True)
    monkeypatch.setattr(kernels, "forward_backward", measured)
    monkeypatch.setattr(kernels.time, "perf_counter", lambda: clock[0])
    return kernels.benchmark_kernels()


@needs_onednn
@pytest.mark.parametrize(("factor", "expected"), [(2.0, "onednn"), (1.05, "onednn"), (0.5, "mkl")])
def test_the_faster_kernel_is_chosen_unless_it_is_wrong(monkeypatch, factor, expected):
    clock = [0.0]
    product = kernels.onednn
    with monkeypatch.context() as wrong:
        wrong.setattr(kernels, "onednn", lambda *a: product(*a) * 1.001)
        assert kernels.benchmark_kernels().kernel == "mkl", "whatever its speed"

    def measured(kernel, *args):
        clock[0] += 1.0 if kernel == "onednn" else factor
        return []

    choice = chosen_with(monkeypatch, measured, clock)
    assert choice.kernel == expected
    assert f"{factor:.2f} times" in choice.reason


@needs_onednn
@pytest.mark.parametrize(("wins", "expected"), [(12, "onednn"), (11, "mkl")])
def test_a_kernel_that_is_faster_in_few_rounds_is_not_chosen(monkeypatch, wins, expected):
    clock, rounds = [0.0], iter(range(1000))

    def measured(kernel, *args):
        if kernel == "onednn":
            clock[0] += 0.5 if next(rounds) // len(kernels.SHAPES) < wins else 1.5
        else:
            clock[0] += 1.0
        return []

    choice = chosen_with(monkeypatch, measured, clock)
    assert choice.kernel == expected
    assert f"in {wins} of 15 rounds" in choice.reason


@needs_onednn
def test_the_choice_is_cached_per_cpu_and_pytorch_version(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    probes = []
    choice = kernels.LinearChoice("onednn", "measured")
    monkeypatch.setattr(kernels, "benchmark_kernels", lambda: probes.append(1) or choice)
    assert choose_linear() == choose_linear() == choice
    assert probes == [1]
    assert torch.__version__ in next(iter(json.loads(cache_file().read_text())))
    monkeypatch.setattr(kernels, "this_machine", lambda: "another")
    choose_linear()
    assert probes == [1, 1]
    assert len(json.loads(cache_file().read_text())) == 2
    assert choose_linear("mkl").kernel == "mkl"  # asked for: the cache is not looked at


@needs_onednn
@pytest.mark.parametrize("content", ["", "[]", '{"cpu": 1}', "[" * 200_000, "{machine: foo}"])
def test_an_invalid_cache_is_ignored(monkeypatch, tmp_path, content):
    choice = kernels.LinearChoice("onednn", "measured")
    monkeypatch.setattr(kernels, "benchmark_kernels", lambda: choice)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_file().parent.mkdir()
    if content == "{machine: foo}":  # of this very machine, with a kernel there is not
        entry = {"kernel": "foo", "reason": "x"}
        content = json.dumps({kernels.this_machine(): entry})
    cache_file().write_text(content)
    choice = choose_linear()
    assert choice.kernel in LINEARS
    assert choose_linear() == choice
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_file()))  # a file: nothing can be written there
    assert choose_linear().kernel in LINEARS
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert cache_file() == tmp_path / ".cache" / "minbert" / "linear.json"
