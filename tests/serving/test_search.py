"""Searches with and without a first pass by codes, against brute force, and kept indexes."""

import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_mining import rows as exact_rows
from test_mining import unit_rows

from common.errors import UserError
from minbert.int8_products import exact_products
from serving import mining, quantized, search
from serving.quantized import CODES, float_product, index_of, int8_product, products, to_int8
from serving.rows import Rows, open_rows
from serving.search import recall

pytestmark = pytest.mark.numeric
CHOICES = [None, *CODES]


def index(rows, name):
    return None if name is None else index_of(rows, name)


def brute_force(embeddings, queries, count):
    """Rows (q, k) by cosine, those of equal cosines by number; NaN rows are left out."""
    there = np.flatnonzero(~np.isnan(embeddings[:, 0]))
    cosines = queries.astype(np.float64) @ embeddings[there].astype(np.float64).T
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
    return there[order], np.take_along_axis(cosines, order, axis=1)


@pytest.fixture
def stored(tmp_path):
    """An array that is not of unit length, with a row of NaN, and its file opened."""
    array = 3 * unit_rows(60, 24)
    array[[0, 17]] = np.nan
    np.save(tmp_path / "a.npy", array)
    return array, open_rows(tmp_path / "a.npy", np.isnan(array[:, 0]))


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(CHOICES),
    n=st.integers(1, 60),
    count=st.integers(1, 70),
    size=st.sampled_from([1, 3, 16, 1000]),
    scores=st.sampled_from([1, 7, 100, 1 << 20]),
    queries=st.sampled_from([1, 2, 100]),
    empty=st.floats(0, 0.9),
    seed=st.integers(0, 99),
)
def test_rescoring_all_rows_equals_brute_force(name, n, count, size, scores, queries, empty, seed):
    """For blocks of any size; products of these rows are exact, and many cosines are equal."""
    embeddings, wanted = exact_rows(n, 3, seed), exact_rows(5, 3, seed + 1)
    draw = np.random.default_rng(seed)
    embeddings[np.flatnonzero(draw.random(n) < empty)[: n - 1]] = np.nan
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "ROWS", size)
        patch.setattr(search, "SCORES", scores)
        patch.setattr(search, "QUERIES", queries)
        patch.setattr(quantized, "BLOCK", size)
        rows = Rows.of(embeddings)
        found = search.search(rows, wanted, count, index(rows, name), candidates=n)
    expected, cosines = brute_force(embeddings, wanted, count)
    assert found.rows.tolist() == expected.tolist()
    assert found.cosines.tolist() == cosines.tolist()


@pytest.mark.parametrize("name", CHOICES)
def test_rows_of_a_file_and_in_memory_agree(name, stored):
    _, mapped = stored
    assert isinstance(mapped.array, np.memmap)
    memory = Rows.of(mapped.take(slice(None)))
    lengths = np.linalg.norm(memory.array, axis=1)[~memory.empty]
    np.testing.assert_allclose(lengths, 1, atol=1e-6)
    queries = unit_rows(4, 24, seed=1)
    found = [
        search.search(one, queries, 7, index(one, name), candidates=2) for one in (mapped, memory)
    ]
    for one, other in zip(*found, strict=True):
        assert one.tolist() == other.tolist()
    assert not {0, 17} & set(found[0].rows.flat)
    pairs = [mining.mine(one, 40) for one in (mapped, memory)]
    for one, other in zip(*pairs, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("block", [7, 2048])
@pytest.mark.parametrize(("count", "threshold"), [(5, -1.0), (5000, -1.0), (5000, 0.2), (30, 0.1)])
def test_mining_by_codes_finds_the_same_pairs(block, count, threshold, monkeypatch):
    monkeypatch.setattr(mining, "BLOCK", block)
    monkeypatch.setattr(mining, "CHUNK", 50)
    monkeypatch.setattr(mining, "FEW", 9)
    embeddings = unit_rows(80, 24)
    embeddings[40:50] = embeddings[:10]  # cosines of 1
    embeddings[[3, 30]] = np.nan
    rows = Rows.of(embeddings)
    found, expected = (
        mining.mine(rows, count, threshold, index=one) for one in (index_of(rows, "int8"), None)
    )
    assert len(expected.first)
    # The last pairs may be tied with others, up to rounding.
    last = expected.cosines[-1] + (2 * mining.ROUNDING if count < 5000 else -1)
    first, second = (
        set(zip(*(part[one.cosines > last] for part in one[:2]), strict=True))
        for one in (found, expected)
    )
    assert first == second
    np.testing.assert_allclose(found.cosines, expected.cosines, atol=mining.ROUNDING)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80), st.integers(0, 99), st.integers(0, 4))
def test_the_bound_on_the_error_of_codes_holds(width, seed, power):
    """Also for rows with a few large numbers, whose scale is that of these."""
    draw = np.random.default_rng(seed)
    array = draw.normal(size=(20, width)) ** (2 * power + 1)
    array = (array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32)
    codes = to_int8(array)
    wide = codes["codes"].astype(np.float64) * codes["scales"].astype(np.float64)[:, None]
    exact = array.astype(np.float64) @ array.astype(np.float64).T
    errors = codes["errors"].astype(np.float64)
    bound = errors[:, None] + errors + np.outer(errors, errors) + mining.ROUNDING
    assert (np.abs(exact - wide @ wide.T) <= bound).all()


def test_codes_of_zeros_and_nan_are_zero():
    array = np.zeros((2, 8), np.float32)
    array[1] = np.nan
    assert all(not values.any() for values in to_int8(array).values())


@pytest.mark.parametrize("width", [1, 33, 384, 1040, 2000])
def test_both_products_are_those_of_int32(width):
    draw = torch.Generator().manual_seed(0)
    left, right = (
        torch.randint(-127, 128, (rows, width), dtype=torch.int8, generator=draw) for rows in (5, 9)
    )
    left[0], right[0], right[1] = 127, 127, -127
    expected = left.int() @ right.int().T
    sums = torch.empty(5, 9, dtype=torch.int32)
    assert torch.equal(float_product(left, right, sums), expected.float())
    assert torch.equal(products(left, right, None), expected.float())
    assert torch.equal(products(left, right, torch.empty(200)), expected.float())
    if exact_products() and width > 1:
        assert torch.equal(int8_product(left, right, sums), expected)


@pytest.mark.parametrize("fault", ["wrong", "error", "missing"])
def test_without_a_product_of_int8_that_of_floats_is_used(fault, monkeypatch):
    def wrong(left, right, out=None):
        if fault == "error":
            raise RuntimeError("no kernel")
        return torch.zeros(len(left), right.shape[1], dtype=torch.int32)

    if fault == "missing":
        monkeypatch.delattr(torch, "_int_mm", raising=False)
    else:
        monkeypatch.setattr(torch, "_int_mm", wrong, raising=False)
    monkeypatch.setattr(quantized, "exact_products", exact_products.__wrapped__)
    assert quantized.fastest_product.__wrapped__() is float_product


@pytest.mark.parametrize("name", CODES)
def test_an_index_is_kept_and_made_anew_for_another_file(name, stored, monkeypatch, capsys):
    array, rows = stored
    folder = rows.source.with_name(f"a.npy.{name}")
    first = index_of(rows, name)
    made = {key: np.array(value) for key, value in first.arrays.items()}
    times = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    index_of(rows, name)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == times
    assert capsys.readouterr().err == ""
    (folder / "codes.npy").write_bytes((folder / "codes.npy").read_bytes()[:-1])
    again = index_of(rows, name)
    assert all(np.array_equal(again.arrays[key], made[key]) for key in made)
    np.save(rows.source, array[::-1])
    os.utime(rows.source, ns=(0, 0))
    new = index_of(open_rows(rows.source, rows.empty[::-1]), name)
    assert all(np.array_equal(new.arrays[key], made[key][::-1]) for key in made)
    line = f"{folder}: index of another a.npy or other texts; rebuilding it"
    assert capsys.readouterr().err.splitlines() == [line] * 2
    assert sorted(path.name for path in folder.parent.iterdir()) == ["a.npy", folder.name]


def test_a_folder_that_is_no_index_is_kept(stored):
    other = stored[1].source.with_name("a.npy.int8")
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"a\.npy\.int8: expected an index of --search int8"):
        index_of(stored[1], "int8")
    assert (other / "notes.txt").read_text() == "mine"


def test_a_number_that_is_not_finite_is_found_when_its_block_is_read(tmp_path):
    array = unit_rows(9)
    array[4, 3] = np.inf
    np.save(tmp_path / "a.npy", array)
    rows = open_rows(tmp_path / "a.npy", np.zeros(9, bool))
    for work in (lambda: search.search(rows, array[:1], 2), lambda: index_of(rows, "int8")):
        with pytest.raises(UserError, match="expected finite numbers, found others in row 5"):
            work()


@pytest.mark.parametrize("name", CODES)
def test_recall_is_the_share_of_the_nearest_that_is_found(name, stored, monkeypatch):
    _, rows = stored
    own, count = index_of(rows, name), 5
    share, sample = recall(rows, own, count, 1)
    assert sample == 58
    queries = rows.take(rows.there())
    found = search.search(rows, queries, count + 1, own, candidates=1).rows
    exact = brute_force(rows.take(slice(None)), queries, count + 1)[0]
    without = [
        [set(near[near != row][:count]) for near in pair]
        for row, *pair in zip(rows.there(), found, exact, strict=True)
    ]
    assert share == pytest.approx(np.mean([len(one & two) / count for one, two in without]))
    assert recall(rows, own, count, 12)[0] == 1
    assert 0.2 < share < (1 if name == "binary" else 1.001)
    monkeypatch.setattr(search, "measured_recall", None)  # not measured again
    assert recall(rows, own, count, 1) == (share, 58)


@pytest.mark.parametrize("name", CODES)
def test_an_index_of_other_empty_texts_is_rebuilt(name, tmp_path, capsys):
    array = unit_rows(20, 16)
    array[7] = array[3]
    np.save(tmp_path / "a.npy", array)
    some = np.arange(20) == 7
    index_of(open_rows(tmp_path / "a.npy", some), name)
    every = open_rows(tmp_path / "a.npy", np.zeros(20, bool))
    found = search.search(every, array[3:4], 2, index_of(every, name), candidates=2)
    assert found.rows.tolist() == [[3, 7]]
    assert "rebuilding it" in capsys.readouterr().err
