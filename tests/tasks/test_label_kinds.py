"""The type of a task, inferred from the cells of its column of labels."""

import pytest

from tasks.own_types import infer_type

PROSE = [f"Hello, this is letter {n}, and it is long." for n in range(30)]


@pytest.mark.parametrize(
    ("cells", "texts", "kind"),
    [
        (["red", "blue", "red", "green"] * 5, 1, "classification"),
        (["yes", "no", "yes"], 1, "classification"),
        (["0", "1", "1"], 1, "classification"),
        (["1", "2.0", "3"] * 5, 2, "classification"),
        ([str(n) for n in range(20)], 1, "classification"),
        (["1", "2", "3", "none"] * 5, 1, "classification"),
        ([str(n / 2) for n in range(9)], 1, "regression"),
        ([str(n % 30) for n in range(90)], 1, "regression"),
        ([str(n / 2) for n in range(9)], 2, "similarity"),
        (["app|late", "late", "app", "gift|app"] * 4, 1, "classification"),
        ([*["a"] * 50, *["b"] * 40, *(f"other {n}" for n in range(30))], 1, "classification"),
    ],
)
def test_types_are_inferred(cells, texts, kind):
    assert infer_type(cells, texts) == kind


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (PROSE, "found free text or ids: 30 of 30 values occur once, such as 'Hello, this is"),
        ([*"aabcde"], "4 of 6 values occur once"),
    ],
)
def test_columns_that_are_no_labels_are_refused(cells, line):
    with pytest.raises(ValueError, match=line) as error:
        infer_type(cells, 1)
    assert len(str(error.value)) < 250
