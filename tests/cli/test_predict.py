"""Mode predict: lines, and tables with all their columns and reasons; and mode serve."""

import csv
import io
import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from run_files import ROOT


@pytest.fixture
def predict(finished, cwd):
    """The command, in a folder of the test."""
    return ("--mode", "predict", "--run", finished[0])


def read(text, delimiter="\t"):
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


def test_lines_with_a_tab_are_pairs_and_no_line_has_no_prediction(predict, run_ok, stdin):
    stdin(b"a cat\ta dog\nthe sun\tthe moon\n")
    header, *rows = read(run_ok(*predict, "--probabilities").stdout)
    assert header[:3] == ["text", "other text", "sst"]
    assert "sst: very positive" in header
    assert len(rows) == 2
    shares = [float(v) for h, v in zip(header, rows[0], strict=True) if h.startswith("sst:")]
    assert sum(shares) == pytest.approx(1, abs=1e-4)
    stdin(b"")
    assert run_ok(*predict).stdout == ""


def test_new_texts_are_cut_as_in_training_or_as_asked(cwd, run_ok):
    command = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--limit", "20")
    run_ok(*command, "--epochs", "1", "--max-tokens", "16", "--output", "run")
    Path("texts.txt").write_text("a cat\n" + "we were there for a week " * 4 + "\n")
    for mode, output in (("predict", "out.csv"), ("encode", "out.npy")):
        given = ("--mode", mode, "--run", "run", "--input", "texts.txt", "--output", output)
        assert "longer than 16 tokens and was cut" in run_ok(*given).stderr
        assert "cut" not in run_ok(*given, "--max-tokens", "100", "--overwrite").stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a\tb\tc\n", "line 1: expected one text, or two with a tab"),
        (b"a\nb\xff\n", "standard input, line 2: expected UTF-8 text, found byte 0xff"),
    ],
)
def test_lines_that_cannot_be_read_are_refused(predict, error_line, stdin, text, expected):
    stdin(text)
    assert expected in error_line(1, *predict)


def test_all_columns_are_kept_in_their_order_with_reasons(predict, error_line, run_ok):
    rows = [["7", "fine", 'a "b", c'], ["", "  ", "x\ny"], ["9", "a film to love " * 60, ""]]
    header, target = ["id", "text", "a note, too"], Path("answers", "out.csv")
    with open("in.csv", "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    command = (*predict, "--input", "in.csv", "--text", "text", "--tasks", "sst")
    command = (*command, "--output", target)
    result = run_ok(*command)
    assert result.stdout.startswith("3 rows, ")
    assert "1 of 3 rows has an empty text, and no prediction" in result.stderr
    written, *found = read(target.read_text(), ",")
    assert written == [*header, "sst", "reason"]
    assert [row[:3] for row in found] == rows
    assert [row[-1] for row in found] == ["", "empty text", "cut"]
    assert [bool(row[3]) for row in found] == [True, False, True]
    assert "add --overwrite for a file" in error_line(1, *command)
    run_ok(*command, "--overwrite")
    assert [file.name for file in target.parent.iterdir()] == ["out.csv"]


def test_columns_with_the_names_of_new_ones(predict, run_ok):
    Path("in.csv").write_text("sst,text,reason\n1,fine,4\n")
    sst = (*predict, "--text", "text", "--tasks", "sst")
    run_ok(*sst, "--input", "in.csv", "--output", "out.csv")
    run_ok(*sst, "--input", "out.csv", "--output", "again.csv")
    header, row = read(Path("again.csv").read_text(), ",")
    names = ["sst (predicted)", "reason (predicted)", "sst (predicted 2)", "reason (predicted 2)"]
    assert header == ["sst", "text", "reason", *names]
    assert row[:3] == ["1", "fine", "4"]
    assert row[3] == row[5] != ""


VALUES = {"s": "é", "n": 3, "f": 3.0, "b": True, "none": None, "list": ["a", 1], "d": {"k": "ü"}}
SHOWN = ["é", "3", "3.0", "true", "", '["a", 1]', '{"k": "ü"}']


def test_columns_of_json_lines_may_have_any_type(predict, run_ok):
    first = {**VALUES, "text": "fine"}
    lines = [first, {"text": "dull", "s": "\ud800"}, {"text": 5, "\ud800": 1}]
    Path("in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    command = (*predict, "--input", "in.jsonl", "--text", "text", "--tasks", "sst")
    run_ok(*command, "--output", "out.csv")
    header, *found = read(Path("out.csv").read_text(), ",")
    assert header == [*VALUES, "text", "?", "sst", "reason"]
    assert found[0][:9] == [*SHOWN, "fine", ""]
    assert found[1][:9] == ["?", *[""] * 6, "dull", ""]
    assert found[2][:9] == [*[""] * 7, "5", "1"]


def test_an_empty_side_of_a_pair_leaves_out_the_tasks_that_read_it(predict, run_ok):
    rows = ["a film to love,a cat,0", ",a cat,1", "dull,   ,1"]
    Path("l.csv").write_text("\n".join(["a,b,stars", *rows]) + "\n")
    result = run_ok(*predict, "--input", "l.csv", "--text", "a", "b", "--probabilities")
    header, *found = read(result.stdout)
    empty = [[name for name, field in zip(header, row, strict=True) if not field] for row in found]
    assert empty[:2] == [["reason"], ["a", *header[3:-1]]]
    of_pairs = [name for name in header[3:-1] if not name.startswith("sst")]
    assert empty[2] == of_pairs  # sst reads the first text only


def test_quotes_may_be_plain_text(predict, run_ok):
    Path("test.tsv").write_text('index\tsentence1\tsentence2\n7\tso "he\tsaid\n3\tx\ty\n')
    command = (*predict, "--input", "test.tsv", "--text", "sentence1", "sentence2")
    run_ok(*command, "--tasks", "qqp", "--table", "quotes=no", "--output", "table.tsv")
    rows = read(Path("table.tsv").read_text())
    assert [row[:3] for row in rows[1:]] == [["7", 'so "he', "said"], ["3", "x", "y"]]


@pytest.mark.parametrize(
    ("flags", "status", "expected"),
    [
        ("--input x.csv", 1, "name the column of the texts with --text"),
        ("--input s.txt --tasks sts", 1, "sts: give pairs of texts"),
        ("--input none.tsv --text a --output out.tsv", 1, "none.tsv: the file has no rows"),
        ("--input j.tsv --text a", 1, "j.tsv, line 3: several lines between quotation marks"),
        ("--input j.tsv --text a --table quotes=", 2, "table: expected key=value, found 'quotes='"),
        ("--input j.tsv --text a --table quote=no", 2, "table: no key 'quote'; choose from quotes"),
    ],
)
def test_wrong_flags_and_files_are_refused(predict, error_line, flags, status, expected):
    Path("s.txt").write_text("A cat sleeps.\n")
    Path("none.tsv").write_text("index\ta\tb\n")
    Path("j.tsv").write_text('a\tb\nwell\t1\n"so\t2\n5 feet 6"\t3\n')
    assert expected in error_line(status, *predict, *flags.split())
    assert not list(Path().glob("out.*"))


@pytest.mark.slow
def test_the_page_is_served_until_the_process_ends(finished):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "run.py", "--mode", "serve", "--run", str(finished[0])]
    command += ["--port", port]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert f"http://127.0.0.1:{port}/" in process.stdout.readline()
        page = b""
        while not page:  # the line comes before the server listens
            try:
                page = urllib.request.urlopen(f"http://127.0.0.1:{port}/").read()
            except OSError:
                assert process.poll() is None
                time.sleep(0.1)
        process.terminate()
        assert process.wait() in (0, 130, -15)
    assert b"<title>Sentences</title>" in page
