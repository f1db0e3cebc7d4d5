"""The rows: Gram matrices and combined gradient against plain matrices, dense and sparse."""

import numpy as np
import pytest
import torch
from tolerances import assert_near
from torch import nn

from multitask.loop import gradients as module
from multitask.loop.gradients import GradientRows

pytestmark = pytest.mark.numeric

LINES, WIDTH = 50, 4


class Model(nn.Module):
    """Sparse words and two dense parameters, in two sections."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.word = nn.Embedding(LINES, WIDTH, sparse=True)
        self.matrix, self.bias = nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(5))

    def rows(self):
        sections = {"first": [self.word.weight, self.bias], "second": [self.matrix]}
        return GradientRows(sections, self.word.weight)

    def objective(self, ids, factor):
        words = self.word(torch.tensor(ids)).square().sum()
        return factor * (words + self.matrix.sin().sum() + (self.bias**3).sum())

    def plain(self, *objective):
        """The same gradient by autograd, flat: words, bias, matrix."""
        self.zero_grad(set_to_none=True)
        self.objective(*objective).backward()
        found = [self.word.weight.grad.to_dense(), self.bias.grad, self.matrix.grad]
        self.zero_grad(set_to_none=True)
        return torch.cat([g.flatten() for g in found]).double()

    def written(self):
        parameters = (self.word.weight, self.bias, self.matrix)
        return torch.cat([p.grad.flatten() for p in parameters]).double()


STEPS = [
    [([1, 2, 2, 7], 1.0), ([7, 9], -0.5), ([3], 2.0)],
    [([4, 1], 0.3), ([1, 30], 1.7)],  # fewer objectives, other words
    [([49], 1.0)],
]


@pytest.mark.parametrize("chunk", [1 << 16, 4])  # one chunk of columns and many
def test_grams_and_combined_gradient_equal_plain_matrix_products(chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    model = Model()
    rows = model.rows()
    for objectives in STEPS:
        expected = torch.stack([model.plain(*objective) for objective in objectives])
        for index, objective in enumerate(objectives):
            model.objective(*objective).backward()
            rows.collect(index)
            assert all(p.grad is None for p in model.parameters())
        grams = rows.grams()
        assert set(grams) == {"first", "second"}
        second = expected[:, LINES * WIDTH + 5 :]
        assert_near(grams["second"], second @ second.T, second.shape[1])
        whole = (expected @ expected.T).numpy()
        assert_near(sum(grams.values()), whole, expected.shape[1])
        weights = np.arange(1.0, len(objectives) + 1)
        rows.write_back(weights)
        assert_near(model.written(), torch.from_numpy(weights) @ expected, len(objectives))
        model.zero_grad(set_to_none=True)


def test_parameters_without_gradient_count_as_zero():
    model = Model()
    rows = model.rows()
    model.bias.grad = torch.ones(5)
    rows.collect(0)
    rows.collect(1)
    np.testing.assert_array_equal(sum(rows.grams().values()), [[5, 0], [0, 0]])
    rows.write_back(np.ones(2))
    assert model.word.weight.grad.abs().sum() == 0
    assert model.matrix.grad.abs().sum() == 0


def test_the_gram_matrix_keeps_digits_that_a_float32_sum_would_lose():
    torch.manual_seed(1)
    long = nn.Parameter(torch.zeros(3_000_000))
    rows = GradientRows({"all": [long]})
    row = torch.rand(3_000_000) + 1
    long.grad = row.clone()
    rows.collect(0)
    # One float32 sum of all is 1e-5 off, its chunks together 1e-7.
    assert rows.grams()["all"][0, 0] == pytest.approx(row.double().square().sum().item(), rel=1e-6)
