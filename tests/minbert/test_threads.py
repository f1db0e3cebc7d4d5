"""Passes in threads of one core each."""

import threading

import numpy as np
import pytest
import torch

from minbert import BiEncoder
from minbert.threads import in_threads


@pytest.fixture
def two_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_results_are_in_order_and_threads_have_one_core(two_cores):
    def run(item):
        return item, torch.get_num_threads(), threading.get_ident()

    found = list(in_threads(run, range(50), 2))
    assert [item for item, _, _ in found] == list(range(50))
    assert {cores for _, cores, _ in found} == {1}
    assert threading.get_ident() not in {thread for _, _, thread in found}
    assert list(in_threads(run, [7], 2)) == [(7, 2, threading.get_ident())]
    assert list(in_threads(run, [7, 8], 1))[1] == (8, 2, threading.get_ident())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_embeddings_do_not_depend_on_the_threads(two_cores, precision):
    model = BiEncoder.from_pretrained("tiny")
    texts = [f"sentence {number} " * (number % 17) for number in range(600)]
    several = model.encode(texts, precision)
    torch.set_num_threads(1)
    assert np.array_equal(model.encode(texts, precision), several)


def test_autocast_of_the_caller_does_not_change_embeddings(two_cores):
    model = BiEncoder.from_pretrained("tiny")
    for texts in (["one text"], [f"sentence {number} " * 20 for number in range(300)]):
        plain = model.encode(texts)
        with torch.autocast("cpu", torch.bfloat16):
            assert np.array_equal(model.encode(texts), plain)
