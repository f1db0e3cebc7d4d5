"""Random batches for the tests of losses."""

import pytest
import torch

LABELS = {
    "balanced": [0, 1, 2] * 3,
    "unbalanced": [0, 0, 0, 0, 1, 1, 2, 2, 2],
    "a class of one": [0, 0, 1, 2, 2],
    "a class missing": [0, 0, 2, 2, 2],
    "one class": [1, 1, 1],
    "no class twice": [0, 1, 2],
    "one example": [0],
}
every_batch = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def drawn(labels, seed=0, width=6):
    """Random vectors in float64, one for each label, and the labels."""
    torch.manual_seed(seed)
    return torch.randn(len(labels), width, dtype=torch.float64), torch.tensor(labels)


def mean(terms):
    """The mean of a list of numbers, zero of none."""
    return sum(terms) / len(terms) if terms else 0.0
