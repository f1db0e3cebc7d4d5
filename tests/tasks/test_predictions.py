"""Prediction files, byte for byte; files of scores; what is wrong with others' files."""

import numpy as np
import pytest

from reports.submissions import check_predictions, read_value
from tasks import build_task
from tasks.kinds import classification, similarity
from tasks.predictions import Scores, UserError, read_scores, write_prediction_file, write_scores

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


@pytest.mark.parametrize("name", EXPECTED)
def test_the_leaderboards_bytes(name, tmp_path):
    task, path = build_task(name), tmp_path / "output.csv"
    predictions = list(task.kind.predictions(SCORES[name]))
    write_prediction_file(path, task.output, ["abc", "dé"], predictions)
    assert path.read_bytes() == EXPECTED[name]
    assert [file.name for file in tmp_path.iterdir()] == ["output.csv"]
    assert task.output.name("dev") == f"{'para' if name == 'qqp' else name}-dev-output.csv"
    for value in map(np.float32, (0.0, 5.0, 1e-7, 3.9194524, -0.25) if name == "sts" else ()):
        assert np.float32(float(task.output.show(value))) == value


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
    ("content", "expected"),
    [
        ({"ids": np.array(["a"])}, "KeyError: 'probabilities'"),
        ({"ids": np.array(["a"]), "probabilities": np.ones(2)}, "a finite value for each id"),
        ({"ids": np.array(["a"]), "probabilities": np.array([np.nan])}, "a finite value for each"),
        ({"ids": np.array([1]), "probabilities": np.ones(1)}, "and ids as text, found others"),
        ({"ids": np.array(["a"]), "probabilities": np.array([2])}, "numbers with a point, and ids"),
        ({"ids": np.array([{}]), "probabilities": np.ones(1)}, "expected a run's probabilities"),
        (b"PK\x03\x04 half", "expected a run's probabilities"),
    ],
)
def test_invalid_files_of_scores_are_refused(content, expected, tmp_path):
    file = tmp_path / "p.npz"
    if isinstance(content, dict):
        np.savez(file, **content)
    else:
        file.write_bytes(content)
    with pytest.raises(UserError, match=rf"p\.npz: .*{expected}"):
        read_scores(file)


@pytest.mark.parametrize(
    ("arrays", "classes", "expected"),
    [
        ({}, 5, "expected probabilities of 5 classes, found probabilities of 3 classes"),
        ({"values": np.ones(2)}, 3, "expected probabilities of 3 classes, found similarities"),
        ({"values": np.full((2, 3), 1.2)}, 3, "expected probabilities from 0 to 1, found others"),
        ({}, None, "expected similarities, found probabilities of 3 classes"),
    ],
)
def test_scores_of_another_task(arrays, classes, expected, tmp_path):
    given = {"values": np.full((2, 3), 1 / 3), "targets": np.array([0, 2])} | arrays
    write_scores(tmp_path / "p.npz", Scores(np.array(["a", "b"]), **given))
    with pytest.raises(UserError, match=expected):
        read_scores(tmp_path / "p.npz", classification(classes) if classes else similarity(5.0))


IDS = ["a1", "b2", "ç3"]
VALUES = {"sst": [0, 4, 2], "qqp": [0, 1, 1], "sts": [0.25, -1e-7, 4.9]}


@pytest.fixture
def written(tmp_path):
    def write(task, change=lambda content: content):
        made, file = build_task(task), tmp_path / "output.csv"
        write_prediction_file(file, made.output, IDS, VALUES[task])
        file.write_bytes(change(file.read_bytes()))
        return check_predictions(file, made, IDS)

    return write


@pytest.mark.parametrize("task", VALUES)
def test_what_the_toolkit_writes_is_sound_in_any_order(written, task, tmp_path):
    found = written(task)
    assert (found.problems, found.rows) == ((), 3)
    np.testing.assert_array_equal(found.values, VALUES[task])
    found = check_predictions(tmp_path / "output.csv", build_task(task), IDS[::-1])
    np.testing.assert_array_equal(found.values, VALUES[task][::-1])


@pytest.mark.parametrize(
    ("task", "old", "new", "expected"),
    [
        ("sst", b"id \t", b"id\t", "line 1: expected the header"),
        ("sst", b"a1 , 0 ", b"a1,0", "line 2: expected 'ID , VALUE '"),
        ("sst", b" , 4 ", b" , 5 ", "line 3: expected 0, 1, 2, 3, 4, found '5'"),
        ("qqp", b"b2 , 1.0 ", b"b2 , 1 ", "line 3: expected 0.0, 1.0, found '1'"),
        ("sts", b"0.25", b"nan", "line 2: expected a number, found 'nan'"),
        ("sst", b"b2", b"a1", "line 3: the id a1 is there twice"),
        ("sst", b"b2 , 4 \n", b"", "missing ids: 1 of 3, such as b2"),
        ("sst", "ç3".encode(), "ç3".encode("latin-1"), "line 4: 'utf-8' codec can't decode"),
        ("sst", b" , 2 \n", b" , 2 ", "the last row needs a line break"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(written, task, old, new, expected):
    def change(content):
        assert content.count(old) == 1
        return content.replace(old, new)

    found = written(task, change)
    assert any(expected in problem for problem in found.problems), found.problems
    assert all("output.csv" in problem for problem in found.problems)
    assert found.values is None


def test_many_problems_are_counted(tmp_path):
    file, sst = tmp_path / "output.csv", build_task("sst")
    assert check_predictions(file, sst, IDS).problems
    file.write_bytes(b"")
    assert check_predictions(file, sst, IDS).problems
    file.write_bytes(b"id \t Predicted_Sentiment \n" + b"nonsense\n" * 100)
    found = check_predictions(file, sst, IDS)
    assert len(found.problems) == 6
    assert found.problems[-1].endswith("and 96 more")


@pytest.mark.parametrize("text", ["1_000", "0x1p3", "infinity", "1e999", "1,5", ".", ""])
def test_numbers_that_other_readers_would_not_take(text):
    with pytest.raises(ValueError, match="expected a "):
        read_value(build_task("sts"), text)
    for plain in ("3", "-0.25", "1e-05", "4.", "2.5E+1"):
        assert read_value(build_task("sts"), plain) == float(plain)
