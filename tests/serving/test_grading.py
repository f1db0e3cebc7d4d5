"""Labels of a file as numbers, and metrics of the predictions."""

import numpy as np
import pytest

from serving.grading import metrics_of, targets_of
from tasks import build_task
from tasks.text_files import DataError


def rows(*labels):
    return [(f"line {number}", label) for number, label in enumerate(labels, 2)]


def test_classes_by_their_label_or_their_name():
    task = build_task("trec")
    assert targets_of(task, rows("HUM", "human", " ABBR ", "")).tolist()[:3] == [3, 3, 0]
    assert np.isnan(targets_of(task, rows("HUM", ""))[1])
    with pytest.raises(DataError, match=r"line 3: expected ABBR, DESC, .* found 'X'"):
        targets_of(task, rows("HUM", "X"))
    for label, meant in (("humen", "human"), ("enty", "ENTY"), ("HUMAN", "human")):
        with pytest.raises(DataError, match=f"found '{label}'; did you mean {meant}\\?$"):
            targets_of(task, rows("HUM", label))
    for label, meant in (("negatve", "negative"), ("7", "")):
        expected = f"from 0 to 4, found '{label}'" + (f"; did you mean {meant}\\?" if meant else "")
        with pytest.raises(DataError, match=f"{expected}$"):
            targets_of(build_task("sst"), rows("1", label))
    with pytest.raises(DataError, match="trec: expected a row with a label"):
        targets_of(task, rows("", "-"))


def test_other_classes_than_the_first_ones_are_left_out():
    task = build_task("trec", classes="2")
    targets = targets_of(task, rows("ABBR", "HUM", "DESC", "ENTY"))
    assert np.isnan(targets).tolist() == [False, True, False, True]
    assert metrics_of(task, np.array([0, 1, 0, 1]), targets)["accuracy"] == 0.5


def test_similarities_are_any_numbers():
    task = build_task("sts")
    targets = targets_of(task, rows("7", "-1.5", "3", ""))
    assert targets.tolist()[:3] == [7, -1.5, 3]
    assert metrics_of(task, np.array([2.0, 1, 1.5, 9]), targets)["spearman"] == pytest.approx(1)
    with pytest.raises(DataError, match="line 2: expected a number, found 'alike'"):
        targets_of(task, rows("alike"))


def test_lists_of_labels():
    task = build_task("etpc")
    targets = targets_of(task, rows("[2, 5]", "", "[0, 0]"))
    assert targets.shape == (3, 26)
    assert np.flatnonzero(targets[0]).tolist() == [1, 4]
    assert np.isnan(targets[1]).all()
    assert not targets[2].any()
    predicted = np.zeros((3, 26), int)
    predicted[0, 1] = predicted[1, 0] = 1  # the second row has no label
    assert metrics_of(task, predicted, targets)["accuracy"] == pytest.approx(51 / 52)
    with pytest.raises(DataError, match=r"line 2: expected a list of types from 1 to 31"):
        targets_of(task, rows("[99]"))
