"""Examples are aligned by their ids, in any order."""

from dataclasses import replace

import numpy as np
import pytest

from ensemble.alignment import aligned
from tasks.kinds import classification
from tasks.predictions import Scores, UserError

argmax = classification(2).predictions


@pytest.fixture
def table():
    draw = np.random.default_rng(0)
    ids = np.array([f"id{i}" for i in range(9)])
    return Scores(ids, draw.random((9, 3), np.float32), draw.integers(3, size=9))


def moved(table, order):
    return Scores(table.ids[order], table.values[order], table.targets[order])


def test_rows_follow_the_first_models_ids(table):
    order = np.random.default_rng(1).permutation(9)
    other = replace(moved(table, order), values=moved(table, order).values + 1)
    found = aligned({"a": table, "b": other}, argmax)
    assert found.ids.tolist() == table.ids.tolist()
    np.testing.assert_array_equal(found.values[0], table.values)
    np.testing.assert_array_equal(found.values[1], table.values + 1)
    np.testing.assert_array_equal(found.targets, table.targets)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda t: moved(t, np.arange(8)),
            "b: expected the examples of a, found others: only one of them has id8",
        ),
        (lambda t: replace(t, values=t.values[:, :2]), r"b: expected values \(9, 3\)"),
        (lambda t: replace(t, targets=t.targets + 1), "b: expected the labels of a"),
    ],
)
def test_different_ids_shapes_or_labels_are_refused(table, change, expected):
    with pytest.raises(UserError, match=expected):
        aligned({"a": table, "b": change(table)}, argmax)
    with pytest.raises(
        UserError, match="b: expected the examples of a, found others: only one of them has id8"
    ):
        aligned({"a": moved(table, np.arange(8)), "b": table}, argmax)
