"""What predict writes for a file: all its columns, and reasons; and a window at a time."""

import csv
import io
import json
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from serving.predict_file import predict_rows, read_rows
from serving.prediction import Prediction

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


def test_columns_of_parquet_files_may_have_any_type(predict):
    pyarrow = pytest.importorskip("pyarrow")
    import datetime

    from pyarrow import parquet

    rows = [{**VALUES, "text": "fine", "day": datetime.date(2026, 1, 2)}, {"text": "dull"}]
    table = pyarrow.Table.from_pylist([{**rows[0], "list": ["a", "1"]}, *rows[1:]])
    parquet.write_table(table, "in.parquet")
    header, *found = predict("in.parquet")
    assert header == [*VALUES, "text", "day", "sst", "reason"]
    assert found[0][:9] == [*SHOWN[:5], '["a", "1"]', SHOWN[6], "fine", "2026-01-02"]
    assert (found[1][:6], found[1][7:9]) == ([""] * 6, ["dull", ""])


class FakeModel:
    """A model whose predictions cost nothing."""

    def __init__(self, tokenizer):
        self.model = SimpleNamespace(bi_encoder=SimpleNamespace(tokenizer=tokenizer))

    def chosen(self, tasks, columns):
        return ["sst"]

    def encoders(self, precision):
        return {}

    def predict_window(self, columns, names, encoders):
        n = len(columns[0])
        none = np.zeros(n, bool)
        return {"sst": Prediction("sst", np.zeros(n), ["x"] * n, none, none)}


def test_large_rows_make_small_windows(cwd, monkeypatch):
    monkeypatch.setattr("minbert.sentences.HELD", 1 << 20)
    Path("in.csv").write_text("text,more\n" + f"a film,{'x' * 200_000}\n" * 100)
    model = FakeModel(SimpleNamespace(max_tokens=10))
    tracemalloc.start()
    try:
        with open("out.tsv", "w") as file:
            assert predict_rows(model, read_rows(Path("in.csv"), ["text"]), file) == 100
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20  # of 20 MB
    assert Path("out.tsv").stat().st_size > 20_000_000


def test_windows_give_the_same_rows(predict, monkeypatch):
    Path("in.csv").write_text("text\n" + "".join(f"film {n}\n" for n in range(10)))
    whole = predict("in.csv")
    monkeypatch.setattr("serving.predict_file.WINDOW", 4)
    assert predict("in.csv") == whole
