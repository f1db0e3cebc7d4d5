"""Prediction files, byte for byte."""

import numpy as np
import pytest

from tasks import build_task
from tasks.predictions import (
    PredictionError,
    PredictionFile,
    Scores,
    read_scores,
    read_scores_of,
    write_predictions,
    write_scores,
)

EXPECTED = {
    "sst": b"id \t Predicted_Sentiment \nabc , 3 \nd\xc3\xa9 , 0 \n",
    "qqp": b"id \t Predicted_Is_Paraphrase \nabc , 1.0 \nd\xc3\xa9 , 0.0 \n",
    "sts": b"id \t Predicted_Similiary \nabc , 4.25 \nd\xc3\xa9 , 0.1 \n",
}
SCORES = {
    "sst": np.eye(5, dtype=np.float32)[[3, 0]],
    "qqp": np.eye(2, dtype=np.float32)[[1, 0]],
    "sts": np.array([4.25, 0.1], np.float32),
}

PLAIN = PredictionFile("stem", "C", str)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_leaderboards_bytes(name, tmp_path):
    task, path = build_task(name), tmp_path / "output.csv"
    predictions = list(task.kind.predictions(SCORES[name]))
    write_predictions(path, task.output, ["abc", "dé"], predictions)
    assert path.read_bytes() == EXPECTED[name]
    assert [file.name for file in tmp_path.iterdir()] == ["output.csv"]


def test_the_file_names_and_similarities_to_the_last_bit():
    names = [build_task(name).output.name("dev") for name in ("sst", "qqp", "sts")]
    assert names == ["sst-dev-output.csv", "para-dev-output.csv", "sts-dev-output.csv"]
    for value in (0.0, 5.0, 1e-7, 3.9194524, -0.25):
        text = build_task("sts").output.show(np.float32(value))
        assert np.float32(float(text)) == np.float32(value)


def test_an_older_file_is_replaced(tmp_path):
    path = tmp_path / "output.csv"
    path.write_text("old and much longer than the new one " * 9)
    write_predictions(path, PLAIN, ["a"], [1])
    assert path.read_bytes() == b"id \t C \na , 1 \n"


def test_ids_and_predictions_of_different_number_write_nothing(tmp_path):
    with pytest.raises(ValueError, match="zip"):
        write_predictions(tmp_path / "output.csv", PLAIN, ["a", "b"], [1])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scores", [SCORES["sst"], SCORES["sts"].astype(np.float64)])
def test_scores_are_plain_arrays_and_are_read_back(scores, tmp_path):
    file = tmp_path / "p.npz"
    (tmp_path / "p.npz.tmp").write_text("mine")
    write_scores(file, Scores(np.array(["abc", "dé"]), scores, np.array([3, 0])))
    with np.load(file, allow_pickle=False) as arrays:
        assert set(arrays) == {"ids", "probabilities", "targets"}
        assert arrays["probabilities"].dtype == np.float32
    found = read_scores(file)
    assert (found.ids.tolist(), found.targets.tolist()) == (["abc", "dé"], [3, 0])
    np.testing.assert_array_equal(found.values, scores.astype(np.float32))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["p.npz", "p.npz.tmp"]


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"ids": np.array(["a"])}, "expected an array 'probabilities'"),
        ({"ids": np.array(["a"]), "probabilities": np.ones(2)}, "probabilities: expected 1 rows"),
        ({"ids": np.array(["a"]), "probabilities": np.array([np.nan])}, "others at id a"),
        ({"ids": np.array(["a", "a"]), "probabilities": np.ones(2)}, "each id once"),
        ({"ids": np.array([{}]), "probabilities": np.ones(1)}, "expected a run's probabilities"),
    ],
)
def test_scores_that_cannot_be_used(arrays, expected, tmp_path):
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(PredictionError, match=expected):
        read_scores(tmp_path / "p.npz")


@pytest.mark.parametrize(
    ("arrays", "classes", "expected"),
    [
        ({}, 5, "expected probabilities of 5 classes, found probabilities of 3 classes"),
        ({"values": np.ones(2)}, 3, "expected probabilities of 3 classes, found similarities"),
        ({"targets": np.array([0, np.nan])}, 3, "targets: expected classes .*, found nan"),
        ({"predictions": np.array([0, 9])}, 3, "predictions: expected .* 0 to 2, found 9"),
        (
            {"values": np.ones(2), "targets": np.array([1, np.inf])},
            None,
            "targets: expected finite numbers, found inf",
        ),
    ],
)
def test_scores_of_another_task(arrays, classes, expected, tmp_path):
    given = {"values": np.full((2, 3), 1 / 3), "targets": np.array([0, 2])} | arrays
    write_scores(tmp_path / "p.npz", Scores(np.array(["a", "b"]), **given))
    with pytest.raises(PredictionError, match=expected):
        read_scores_of(tmp_path / "p.npz", classes)


@pytest.mark.parametrize("content", [None, b"", b"no archive at all", b"PK\x03\x04 half of one"])
def test_files_that_are_no_scores(content, tmp_path):
    if content is not None:
        (tmp_path / "p.npz").write_bytes(content)
    with pytest.raises(PredictionError, match=r"p\.npz: expected a run's probabilities"):
        read_scores(tmp_path / "p.npz")
