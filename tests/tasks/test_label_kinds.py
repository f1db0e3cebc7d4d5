"""The type of a task, inferred from the cells of its column of labels."""

from collections import Counter

import pytest

from tasks.label_kinds import infer_kind
from tasks.own_types.classes import spelled_twice

TAGS = ["app|late", "late", "app", "gift|app", "gift", "late|gift"] * 4
PROSE = [f"Hello, this is letter {n}, and it is long." for n in range(30)]


@pytest.mark.parametrize(
    ("cells", "texts", "kind", "options", "reason"),
    [
        (["red", "blue", "red", "green"] * 5, 1, "classification", {}, "3 different values"),
        (["yes", "no", "yes"], 1, "classification", {}, "two different values"),
        (["0", "1", "1"], 1, "classification", {}, "two different numbers"),
        (["1", "2", "3"] * 5, 1, "classification", {}, "3 different whole numbers"),
        (["1", "2.0", "3"] * 5, 2, "classification", {}, "3 different whole numbers"),
        ([str(n) for n in range(20)], 1, "classification", {}, "20 different whole numbers"),
        (["1", "2", "3", "none"] * 5, 1, "classification", {}, "4 different values with words"),
        ([str(n / 2) for n in range(9)], 1, "regression", {}, "9 different numbers from 0 to 4"),
        ([str(n % 30) for n in range(90)], 1, "regression", {}, "30 different numbers"),
        ([str(n / 2) for n in range(9)], 2, "similarity", {}, "9 different numbers"),
        (TAGS, 1, "multi-label", {"separator": "|"}, "3 labels, several in a cell"),
        ([t.replace("|", ", ") for t in TAGS], 1, "multi-label", {"separator": ","}, "3 labels"),
        ([t.replace("|", "/") for t in TAGS], 1, "multi-label", {"separator": "/"}, "3 labels"),
        ([t.replace("|", ";") for t in TAGS], 1, "multi-label", {"separator": ";"}, "3 labels"),
        (["1|2", "2|3", "3|1"] * 9, 1, "multi-label", {"separator": "|"}, "3 labels"),
        # Commas and slashes that separate no labels.
        (["bed, bath", "food, drinks", "sports"] * 9, 1, "classification", {}, "3 different"),
        (["and/or", "either", "both"] * 9, 1, "classification", {}, "3 different"),
        (["yes, I do", "no, never"] * 9, 1, "classification", {}, "two different values"),
        (["[18, 35]", "[36, 60]"] * 9, 1, "classification", {}, "two different values"),
        (["1/2", "2/3", "1/3"] * 9, 1, "classification", {}, "3 different values"),
        ([*["red", "blue", "green"] * 20, "red|blue", "red|green"], 1, "classification", {}, "5"),
    ],
)
def test_kinds_are_inferred(cells, texts, kind, options, reason):
    found = infer_kind(Counter(cells), texts)
    assert (found.type, found.options) == (kind, options)
    assert found.reason.startswith(reason)


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (PROSE, "found free text or ids: 30 of 30 values occur once, such as 'Hello, this is"),
        ([str(1000 + n) for n in range(50)], "found free text or ids"),
        ([*"aabcde"], "4 of 6 values occur once"),
        (["1", "2.0", "3", "2"] * 9, "expected one spelling of a number, found '2.0' and '2'"),
        (["red"] * 9, "expected two different labels or more, found 'red'"),
        ([], "found none"),
        (["2,5", "2", "3,5"] * 9, "expected a point in decimal numbers, .*, found '[23],5'"),
        (["1,000", "2,500", "900"] * 9, "no mark between thousands"),
        (
            ["yes/no", "n/a", "yes", "no"] * 9,
            "'/' between them, found 'n/a'; leave such cells blank",
        ),
        (["['a', 'c']", "['a']", "[]"] * 9, "found lists as text, such as .*JSON Lines or Parquet"),
    ],
)
def test_columns_that_are_no_labels_are_refused(cells, line):
    with pytest.raises(ValueError, match=line) as error:
        infer_kind(Counter(cells), 1)
    assert len(str(error.value)) < 250


def test_frequent_values_beside_rare_ones_are_classes():
    cells = Counter(["red"] * 50 + ["blue"] * 40 + [f"other {n}" for n in range(30)])
    assert infer_kind(cells, 1).type == "classification"


def test_large_whole_numbers_are_different_classes():
    large = ["10000000000000000", "10000000000000001"]  # one float
    assert spelled_twice(large) is None
    assert spelled_twice(["1", "2", "1.0"]) == "'1' and '1.0'"
