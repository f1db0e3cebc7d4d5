"""Arrays that come in parts, in memory or in a mapped file."""

import os
from pathlib import Path

import numpy as np
import pytest

from minbert import BiEncoder, tokenizer
from minbert.tokenizer import GrowingArray

PARTS = [np.arange(5), np.zeros(0, np.int64), np.array([7, 8])]


@pytest.mark.parametrize("most", [0, 30, 1000])
def test_parts_become_one_array(monkeypatch, most):
    monkeypatch.setattr(tokenizer, "IN_MEMORY", most)
    found = GrowingArray(np.int32)
    for part in PARTS:
        found.append(part)
    array = found.array()
    assert array.dtype == np.int32
    np.testing.assert_array_equal(array, [0, 1, 2, 3, 4, 7, 8])
    assert (array.base is None) == (most == 1000)


def test_nothing_is_an_empty_array():
    assert GrowingArray(np.int8).array().dtype == np.int8


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists this process' files")
def test_the_file_goes_with_the_array(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tokenizer, "IN_MEMORY", 0)
    before = len(os.listdir("/proc/self/fd"))
    found = GrowingArray(np.int32)
    found.append(np.arange(9))
    array = found.array()
    assert list(tmp_path.iterdir()) == []  # it has no name
    del found, array
    assert len(os.listdir("/proc/self/fd")) == before


def test_tokens_are_the_same_wherever_they_lie(monkeypatch):
    read = BiEncoder.from_pretrained("tiny").tokenizer
    texts = [f"a film number {i} " * (i % 5 + 1) for i in range(5000)]
    expected, pairs = read(texts), read(texts, texts[::-1])
    monkeypatch.setattr(tokenizer, "IN_MEMORY", 0)
    for one, other in ((expected, read(texts)), (pairs, read(texts, texts[::-1]))):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_array_equal(one.offsets, other.offsets)
        if one.segments is not None:
            np.testing.assert_array_equal(one.segments, other.segments)
