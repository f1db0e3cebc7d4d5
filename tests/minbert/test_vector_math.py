"""Numba's functions of numbers agree with float64 and with PyTorch's bfloat16."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numba import njit

from minbert import vector_math
from tests.tolerances import rounding


def slope(activation):
    """Return the derivative of an activation function of PyTorch, by autograd in float64."""

    def at(x):
        x = torch.from_numpy(x).requires_grad_()
        return torch.autograd.grad(activation(x).sum(), x)[0].numpy()

    return at


def tanh_gelu(x):
    return F.gelu(x, approximate="tanh")


FUNCTIONS = {
    "exp": np.exp,
    "gelu": lambda x: F.gelu(torch.from_numpy(x)).numpy(),
    "tanh_gelu": lambda x: tanh_gelu(torch.from_numpy(x)).numpy(),
    "gelu_slope": slope(F.gelu),
    "tanh_gelu_slope": slope(tanh_gelu),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_near_those_of_float64(name):
    function = getattr(vector_math, name)

    @njit
    def each(x, y):
        for i in range(len(x)):
            y[i] = function(x[i])

    x = np.linspace(-60, 20, 4001).astype(np.float32)
    y = np.empty_like(x)
    each(x, y)
    exact = FUNCTIONS[name](x.astype(np.float64))
    # The polynomial of exp has a relative error of 2e-7; those of GELU and its slope are relative
    # to x. exp(-u) of a u near 60 magnifies the rounding of u by u.
    scale = np.abs(exact) if name == "exp" else np.abs(x) + (1 if "slope" in name else 1e-3)
    assert (np.abs(y - exact) <= (2e-7 + 60 * rounding(2)) * scale).all()


def test_bfloat16_is_rounded_and_read_as_by_pytorch():
    @njit
    def there_and_back(x, bits, back):
        for i in range(len(x)):
            bits[i] = vector_math.rounded_to(bits, x[i])
            back[i] = vector_math.load(bits[i])

    generator = np.random.default_rng(0)
    every = generator.integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, 3.3895314e38, -3.4e38, 1.00390625], np.float32)
    halves = (np.arange(1 << 16, dtype=np.uint32) << 16 | 0x8000).view(np.float32)  # ties
    x = np.concatenate([every, edges, halves])
    bits, back = np.empty(len(x), np.int16), np.empty_like(x)
    there_and_back(x, bits, back)
    wanted = torch.from_numpy(x).bfloat16()
    number = ~np.isnan(x)
    assert (bits[number] == wanted.view(torch.int16).numpy()[number]).all()
    assert np.isnan(back[~number]).all()
    assert np.array_equal(back[number], wanted.float().numpy()[number])


def test_kernels_are_kept_by_their_sources_in_a_folder_that_can_be_written(tmp_path, monkeypatch):
    places = vector_math.folder_of_kernels.__wrapped__
    for name in vector_math.SOURCES:
        (tmp_path / name).write_text("one")
    monkeypatch.setattr(vector_math, "__file__", str(tmp_path / "vector_math.py"))
    monkeypatch.setattr(vector_math, "cache_folder", lambda: tmp_path / "cache")
    beside = places()
    assert beside.parent == tmp_path / "__pycache__"
    (tmp_path / "vector_math.py").write_text("two")
    assert places() not in (beside, None)
    (tmp_path / "__pycache__").rename(tmp_path / "old")
    (tmp_path / "__pycache__").write_text("no folder")
    assert places().parent == tmp_path / "cache"
    (tmp_path / "cache").rename(tmp_path / "older")
    (tmp_path / "cache").write_text("no folder")
    assert places() is None
    monkeypatch.setattr(vector_math, "folder_of_kernels", lambda: None)

    def double(begin, end, numbers):
        for i in range(begin, end):
            numbers[i] *= 2

    numbers = np.ones(3, np.float32)
    vector_math.compile_kernel(double)(0, 2, numbers)
    assert numbers.tolist() == [2, 2, 1]
