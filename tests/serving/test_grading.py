"""Labels of a file as numbers, and metrics of the predictions."""

import numpy as np
import pytest

from multitask import RunConfig, task
from multitask.config_tasks import build_tasks
from serving.grading import metrics_of, targets_of
from tasks import build_task
from tasks.text_files import DataError


def rows(*labels):
    return [(f"line {number}", label) for number, label in enumerate(labels, 2)]


def test_classes_by_their_label_or_their_name():
    chosen = build_task("trec")
    assert targets_of(chosen, rows("HUM", "human", " ABBR ", "")).tolist()[:3] == [3, 3, 0]
    assert np.isnan(targets_of(chosen, rows("HUM", ""))[1])
    with pytest.raises(DataError, match=r"line 3: expected ABBR, DESC, .* found 'X'"):
        targets_of(chosen, rows("HUM", "X"))
    for label, meant in (("humen", "human"), ("enty", "ENTY"), ("HUMAN", "human")):
        with pytest.raises(DataError, match=f"found '{label}'; did you mean {meant}\\?$"):
            targets_of(chosen, rows("HUM", label))
    for label, meant in (("negatve", "negative"), ("7", "")):
        expected = f"from 0 to 4, found '{label}'" + (f"; did you mean {meant}\\?" if meant else "")
        with pytest.raises(DataError, match=f"{expected}$"):
            targets_of(build_task("sst"), rows("1", label))
    with pytest.raises(DataError, match="trec: expected a row with a label"):
        targets_of(chosen, rows("", "-"))


def test_other_classes_than_the_first_ones_are_left_out():
    chosen = build_task("trec", classes="2")
    targets = targets_of(chosen, rows("ABBR", "HUM", "DESC", "ENTY"))
    assert np.isnan(targets).tolist() == [False, True, False, True]
    assert metrics_of(chosen, np.array([0, 1, 0, 1]), targets)["accuracy"] == 0.5


def test_similarities_are_any_numbers():
    chosen = build_task("sts")
    targets = targets_of(chosen, rows("7", "-1.5", "3", ""))
    assert targets.tolist()[:3] == [7, -1.5, 3]
    assert metrics_of(chosen, np.array([2.0, 1, 1.5, 9]), targets)["spearman"] == pytest.approx(1)
    with pytest.raises(DataError, match="line 2: expected a number, found 'alike'"):
        targets_of(chosen, rows("alike"))


def test_lists_of_labels():
    chosen = build_task("etpc")
    targets = targets_of(chosen, rows("[2, 5]", "", "[0, 0]"))
    assert targets.shape == (3, 26)
    assert np.flatnonzero(targets[0]).tolist() == [1, 4]
    assert np.isnan(targets[1]).all()
    assert not targets[2].any()
    predicted = np.zeros((3, 26), int)
    predicted[0, 1] = predicted[1, 0] = 1  # the second row has no label
    assert metrics_of(chosen, predicted, targets)["accuracy"] == pytest.approx(51 / 52)
    with pytest.raises(DataError, match=r"line 2: expected a list of types from 1 to 31"):
        targets_of(chosen, rows("[99]"))


def test_labels_of_a_ranking_say_which_text_is_better(tmp_path):
    (tmp_path / "r.csv").write_text("better,worse\n" + "a,b\nc,d\n" * 10)
    own = task(f"quality={tmp_path}/r.csv:type=ranking,text=better,text=worse")
    ranking = build_tasks(RunConfig(tasks=(own,)))["quality"]
    targets = targets_of(ranking, rows("1", "0", ""))
    assert metrics_of(ranking, np.array([0.7, 0.2, 0.9]), targets) == {"order_accuracy": 1.0}
    with pytest.raises(DataError, match=r"line 3: expected 1 .* or 0, found '2'"):
        targets_of(ranking, rows("1", "2"))
