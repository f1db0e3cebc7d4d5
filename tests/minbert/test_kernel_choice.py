"""The choice of the float32 kernel: measured once, cached, and refused if it is unknown."""

import json

import pytest
import torch
import torch.nn.functional as F

from minbert import BiEncoder
from minbert import kernel_choice as kernels
from minbert import linear as products
from minbert.config import LINEARS
from minbert.device import HardwareError
from minbert.kernel_choice import cache_file, choose_linear
from minbert.linear import has_onednn

needs_onednn = pytest.mark.skipif(not has_onednn(), reason="this PyTorch lacks oneDNN")


def test_mkl_is_used_without_the_private_op(monkeypatch):
    for module in (kernels, products):
        monkeypatch.setattr(module, "has_onednn", lambda: False)
    x, weight, bias, _ = kernels.layer_inputs(5, 4, 3)
    assert torch.equal(products.linear(x, weight, bias, "onednn"), F.linear(x, weight, bias))
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
    product = products.onednn
    with monkeypatch.context() as wrong:
        wrong.setattr(products, "onednn", lambda *a: product(*a) * 1.001)
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
