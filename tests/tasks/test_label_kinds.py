"""The type of a task, inferred from the cells of its column of labels."""

from collections import Counter

import pytest

from tasks.own_types import infer_type

TAGS = ["app|late", "late", "app", "gift|app", "gift", "late|gift"] * 4
PROSE = [f"Hello, this is letter {n}, and it is long." for n in range(30)]


@pytest.mark.parametrize(
    ("cells", "texts", "kind", "separator"),
    [
        (["red", "blue", "red", "green"] * 5, 1, "classification", None),
        (["yes", "no", "yes"], 1, "classification", None),
        (["0", "1", "1"], 1, "classification", None),
        (["1", "2.0", "3"] * 5, 2, "classification", None),
        ([str(n) for n in range(20)], 1, "classification", None),
        (["1", "2", "3", "none"] * 5, 1, "classification", None),
        ([str(n / 2) for n in range(9)], 1, "regression", None),
        ([str(n % 30) for n in range(90)], 1, "regression", None),
        ([str(n / 2) for n in range(9)], 2, "similarity", None),
        (TAGS, 1, "multi-label", "|"),
        ([t.replace("|", ", ") for t in TAGS], 1, "multi-label", ","),
        ([t.replace("|", ";") for t in TAGS], 1, "multi-label", ";"),
        (["1|2", "2|3", "3|1"] * 9, 1, "multi-label", "|"),
        # Marks that separate no labels.
        (["bed, bath", "food, drinks", "sports"] * 9, 1, "classification", None),
        (["and/or", "either", "both", "n/a"] * 9, 1, "classification", None),
        (["yes, I do", "no, never"] * 9, 1, "classification", None),
        (["[18, 35]", "[36, 60]"] * 9, 1, "classification", None),
        ([*["red", "blue", "green"] * 20, "red|blue", "red|green"], 1, "classification", None),
        ([*["a"] * 50, *["b"] * 40, *(f"other {n}" for n in range(30))], 1, "classification", None),
    ],
)
def test_types_are_inferred(cells, texts, kind, separator):
    found = infer_type(Counter(cells), texts)
    assert (found["type"], found.get("separator")) == (kind, separator)


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (PROSE, "found free text or ids: 30 of 30 values occur once, such as 'Hello, this is"),
        ([str(1000 + n) for n in range(50)], "found free text or ids"),
        ([*"aabcde"], "4 of 6 values occur once"),
        (["2,5", "2", "3,5"] * 9, "expected a point in decimal numbers, .*, found '[23],5'"),
        (["1,000", "2,500", "900"] * 9, "no mark between thousands"),
        (["['a', 'c']", "['a']", "[]"] * 9, "found lists as text, such as .*JSON Lines or Parquet"),
    ],
)
def test_columns_that_are_no_labels_are_refused(cells, line):
    with pytest.raises(ValueError, match=line) as error:
        infer_type(Counter(cells), 1)
    assert len(str(error.value)) < 250
