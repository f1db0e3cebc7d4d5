"""Tasks from Python: by name, by a description, from lists."""

import numpy as np
import pytest

from common.errors import SettingsError
from multitask import RunConfig, task


def test_lists_become_a_task_over_a_file(tmp_path):
    texts, labels = [f"text {i}" for i in range(20)], ["yes", "no"] * 10
    mine = task(texts, np.array(labels), name="mine", folder=tmp_path)
    assert mine.described.to_json()["type"] == "classification"
    assert RunConfig(tasks=(mine, "sst")).tasks == ("mine", "sst")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("labels", "kind"), [([0, 1] * 5, "classification"), ([0.5, 1, 2, 5, 3.5] * 2, "similarity")]
)
def test_pairs_have_classes_or_similarities(labels, kind, tmp_path):
    pairs = [(f"one {i}", f"other {i}") for i in range(10)]
    mine = task(pairs, labels, name="alike", folder=tmp_path)
    assert mine.described.to_json()["type"] == kind


@pytest.mark.parametrize(
    ("first", "labels", "options", "expected"),
    [
        (None, None, {}, "texts: expected a name or a list of texts, found None"),
        (["a", None], ["x", "y"], {}, "texts: expected texts or pairs of texts, found None"),
        ([b"ab", b"cd"], ["x", "y"], {}, "texts: expected texts or pairs of texts, found b'ab'"),
        ([("a", "b"), ("c",)], ["x", "y"], {}, "texts: expected one or two in each row"),
        (["a"], ["x", "y"], {}, "labels: expected 1, one for each text, found 2"),
        (["a"], [None], {}, "labels: expected texts or numbers, found None"),
        (["a"], ["x"], {"name": "../evil"}, "name: expected lower-case letters"),
        ("mine=f.csv:type=classification", None, {"pair": "joint"}, "options: expected inside"),
        ("sst", ["x"], {}, "labels: expected only for a list of texts"),
        ("sts2", None, {}, "tasks: expected one of"),
    ],
)
def test_a_wrong_task_is_refused_in_one_line(first, labels, options, expected, tmp_path):
    with pytest.raises(SettingsError, match=expected):
        task(first, labels, folder=tmp_path, **options)
    assert not list(tmp_path.iterdir())
