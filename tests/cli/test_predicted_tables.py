"""What predict writes for a file: all its columns, and reasons; and a window at a time."""

import csv
import io
import json
from pathlib import Path

import pytest

LONG = "a film to love " * 60


@pytest.fixture
def predict(finished, cwd):
    """`predict(file, *flags)` returns the rows of the output, read as they were written."""
    from cli import main

    def call(file, *flags, column=("text",)):
        Path("out.csv").unlink(missing_ok=True)
        command = ["--mode", "predict", "--run", str(finished[0]), "--input", file]
        command += ["--column", *column, "--tasks", "sst", "--output", "out.csv", *flags]
        assert main(command) == 0
        with open("out.csv", newline="") as lines:
            return list(csv.reader(lines))

    return call


def test_all_columns_are_kept_in_their_order_with_reasons(predict, capsys):
    rows = [["7", "fine", 'a "b", c'], ["", "  ", "x\ny"], ["9", LONG, ""]]
    with open("in.csv", "w", newline="") as file:
        csv.writer(file).writerows([["id", "text", "note"], *rows])
    header, *found = predict("in.csv")
    assert header == ["id", "text", "note", "sst", "reason"]
    assert [row[:3] for row in found] == rows
    assert [row[-1] for row in found] == ["", "empty text", "cut"]
    assert [bool(row[3]) for row in found] == [True, False, True]
    text = io.StringIO()
    csv.writer(text, delimiter="\t").writerows([["id", "text", "note"], *rows])
    Path("in.tsv").write_text(text.getvalue())
    assert predict("in.tsv") == [header, *found]
    assert "1 of 3 rows have an empty text" in capsys.readouterr().err


def test_columns_with_the_names_of_new_ones(predict):
    Path("in.csv").write_text("sst,text,a,b,reason\n1,fine,2,3,4\n")
    header, row = predict("in.csv")
    assert header == ["sst", "text", "a", "b", "reason", "sst (predicted)", "reason (predicted)"]
    assert row[:5] == ["1", "fine", "2", "3", "4"]
    again, row = (Path("out.csv").rename("in2.csv"), *predict("in2.csv"))[1:]
    assert again == [*header, "sst (predicted 2)", "reason (predicted 2)"]
    assert row[5] == row[7] != ""


VALUES = {"s": "é", "n": 3, "f": 3.0, "b": True, "none": None, "list": ["a", 1], "d": {"k": "ü"}}
SHOWN = ["é", "3", "3.0", "true", "", '["a", 1]', '{"k": "ü"}']


def test_columns_of_json_lines_may_have_any_type(predict):
    first = {**VALUES, "text": "fine"}
    lines = [first, {"text": "dull", "s": "\ud800"}, {"text": 5, "more": 1}]
    Path("in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    header, *found = predict("in.jsonl")
    assert header == [*VALUES, "text", "sst", "reason"]
    assert found[0][:8] == [*SHOWN, "fine"]
    assert found[1][:8] == ["?", *[""] * 6, "dull"]
    assert found[2][:8] == [*[""] * 7, "5"]
