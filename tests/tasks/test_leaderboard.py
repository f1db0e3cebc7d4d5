"""Every way in which a prediction file can be wrong is reported with its line."""

import numpy as np
import pytest

from reports.submissions import check_predictions
from tasks import build_task
from tasks.predictions import finite_number, write_predictions

IDS = ["a1", "b2", "ç3"]
VALUES = {"sst": [0, 4, 2], "qqp": [0, 1, 1], "sts": [0.25, -1e-7, 4.9]}


@pytest.fixture
def written(tmp_path):
    def write(task, change=lambda content: content):
        output, file = build_task(task).output, tmp_path / "output.csv"
        write_predictions(file, output, IDS, VALUES[task])
        file.write_bytes(change(file.read_bytes()))
        return check_predictions(file, output, IDS)

    return write


@pytest.mark.parametrize("task", VALUES)
def test_what_the_toolkit_writes_is_sound(written, task):
    found = written(task)
    assert (found.problems, found.rows) == ((), 3)
    np.testing.assert_array_equal(found.values, VALUES[task])


def test_values_stand_in_the_order_that_was_asked_for(tmp_path):
    output, file = build_task("sts").output, tmp_path / "output.csv"
    write_predictions(file, output, IDS[::-1], VALUES["sts"][::-1])
    np.testing.assert_array_equal(check_predictions(file, output, IDS).values, VALUES["sts"])


@pytest.mark.parametrize(
    ("task", "old", "new", "expected"),
    [
        ("sst", b"id \t", b"id\t", "line 1: expected the header"),
        ("sst", b"a1 , 0 ", b"a1,0", "line 2: expected 'ID , VALUE '"),
        ("sst", b" , 4 ", b" , 5 ", "line 3: expected 0, 1, 2, 3, 4, found '5'"),
        ("qqp", b"b2 , 1.0 ", b"b2 , 1 ", "line 3: expected 0.0, 1.0, found '1'"),
        ("sts", b"0.25", b"nan", "line 2: expected a finite number such as 2.5"),
        ("sst", b"b2", b"a1", "line 3: expected each id once, found a1 again"),
        ("sst", b"b2", b"zz", "line 3: expected an id of the data, found zz"),
        ("sst", b"b2 , 4 \n", b"", "expected 3 ids, lacks 1, such as b2"),
        ("sst", "ç3".encode(), "ç3".encode("latin-1"), "line 4: expected UTF-8"),
        ("sst", b" , 2 \n", b" , 2 ", "expected a line break at the end"),
        ("sst", b" , 2 \n", b" , 2 \n\n", "line 5: expected 'ID , VALUE '"),
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
    file = tmp_path / "output.csv"
    file.write_bytes(b"id \t Predicted_Sentiment \n" + b"nonsense\n" * 100)
    found = check_predictions(file, build_task("sst").output, IDS)
    assert len(found.problems) == 6
    assert found.problems[-1].endswith("and 96 more")
    file.write_bytes(b"")
    assert check_predictions(file, build_task("sst").output, IDS).problems
    file.unlink()
    assert check_predictions(file, build_task("sst").output, IDS).problems


@pytest.mark.parametrize("text", ["1_000", "٣", "0x1p3", "infinity", "1e999", " 1", "1,5", ".", ""])
def test_numbers_that_other_readers_would_not_take(text):
    with pytest.raises(ValueError, match="expected a finite number"):
        finite_number(text)
    for plain in ("3", "-0.25", "1e-05", "4.", "2.5E+1"):
        assert finite_number(plain) == float(plain)
