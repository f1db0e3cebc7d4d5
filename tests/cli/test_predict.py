"""Mode predict: lines, files with columns, and GLUE's format; and mode serve."""

import csv
import io
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from run_files import ROOT

from serving import MultiTaskModel


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
        (b"a\nb\tc\n", "row 2: expected as many texts as in the rows before, 1, found 2"),
        (b"a\nb\xff\n", "standard input, line 2: expected UTF-8 text, found byte 0xff"),
    ],
)
def test_lines_that_cannot_be_read_are_refused(predict, error_line, stdin, text, expected):
    stdin(text)
    assert expected in error_line(1, *predict)


def test_columns_of_a_file_are_predicted_into_a_file(predict, error_line, run_ok):
    rows = 'key,left,"right, too"\n1,a cat,"a ""dog"", or so"\n2,the sun,the moon\n'
    Path("pairs.csv").write_text(rows)
    target = Path("answers", "out.csv")
    command = (*predict, "--input", "pairs.csv", "--column", "left", "right, too")
    command = (*command, "--tasks", "sts", "qqp", "--output", target)
    assert run_ok(*command).stdout.startswith("2 rows, ")
    header, row, _ = read(target.read_text(), ",")
    assert header == ["key", "left", "right, too", "sts", "qqp", "reason"]
    assert (row[:3], row[-1]) == (["1", "a cat", 'a "dog", or so'], "")
    assert "--overwrite would replace it" in error_line(1, *command)
    run_ok(*command, "--overwrite")
    assert [file.name for file in target.parent.iterdir()] == ["out.csv"]


@pytest.mark.parametrize(
    ("name", "columns", "row"),
    [
        ("r.txt", "text,mood", '"fine, {}",{}'),
        ("r", "text,mood", '"fine, {}",{}'),
        ("r.txt", "text\tmood", "fine, {}\t{}"),
        ("r.csv", "text,mood", '"fine, {}",{}'),
    ],
)
def test_predict_reads_a_table_with_any_ending_as_training_does(cwd, name, columns, row, run_ok):
    rows = [row.format(number, "good" if number % 2 else "bad") for number in range(40)]
    Path(name).write_text("\n".join([columns, *rows]) + "\n")
    task = ("--task", f"m={name}:type=classification,text=text,label=mood")
    run_ok("--mode", "single", *task, "--encoder", "tiny", "--epochs", "1", "--output", "o")
    found = ("--mode", "predict", "--run", "o", "--input", name, "--column", "text")
    run_ok(*found, "--output", "out.csv")
    header, first, *more = read(Path("out.csv").read_text(), ",")
    assert header[:3] == ["text", "mood", "m"]
    assert (first[:2], len(more)) == (["fine, 0", "bad"], 39)


def test_rows_with_an_empty_text_have_no_prediction_and_are_counted(predict, run_ok):
    rows = ["a film to love,a cat,0", ",a cat,1", "dull,   ,1"]
    Path("l.csv").write_text("\n".join(["a,b,stars", *rows]) + "\n")
    given = (*predict, "--input", "l.csv", "--column", "a", "b")
    result = run_ok(*given, "--probabilities")
    header, *found = read(result.stdout)
    empty = [[name for name, field in zip(header, row, strict=True) if not field] for row in found]
    assert empty[0] == ["reason"]
    assert empty[1] == ["a", *header[3:-1]]
    assert [row[-1] for row in found] == ["", "empty text", "empty text"]
    of_pairs = [name for name in header[3:-1] if not name.startswith("sst")]
    assert empty[2] == of_pairs  # sst reads the first text only
    line = "2 of 3 rows have an empty text, and no prediction from it"
    assert line in result.stderr
    run_ok(*given, "--tasks", "sts", "--output", "out.tsv")
    Path("t.tsv").write_text("index\ta\tb\n1\t\tx\n")
    command = (*predict, "--input", "t.tsv", "--column", "a", "b", "--tasks", "sts", "--glue")
    run_ok(*command, "--output", "glue.tsv")
    assert float(read(Path("glue.tsv").read_text())[1][1]) >= 0  # leaderboards want a value


def test_a_submission_has_the_indices_and_labels_of_glue(predict, run_ok, tmp_path):
    folder = tmp_path / "glue" / "RTE"
    folder.mkdir(parents=True)
    labels = ("entailment", "not_entailment")
    rows = [f'{n}\ta "cat {n}\tcats\t{labels[n % 2]}' for n in range(12)]
    for split in ("train", "dev"):
        lines = ["index\tsentence1\tsentence2\tlabel", *rows]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    Path("test.tsv").write_text('index\tsentence1\tsentence2\n7\tso "he\tsaid\n3\tx\ty\n')
    train = ("--mode", "single", "--task", "rte", "--data", tmp_path, "--encoder", "tiny")
    run_ok(*train, "--epochs", "1", "--output", "rte")
    rte = (*predict[:3], "rte", "--input", "test.tsv", "--column", "sentence1", "sentence2")
    run_ok(*rte, "--glue", "--output", "RTE.tsv")
    run_ok(*rte, "--quotes", "no", "--output", "table.tsv")
    predicted = [row[3].replace(" ", "_") for row in read(Path("table.tsv").read_text())[1:]]
    assert set(predicted) <= set(labels)
    expected = [["index", "prediction"], ["7", predicted[0]], ["3", predicted[1]]]
    assert read(Path("RTE.tsv").read_text()) == expected


@pytest.mark.parametrize(("task", "index"), [("qqp", "id"), ("sts", "index")])
def test_a_submission_has_numbers_of_classes_or_similarities(task, index, predict, run_ok):
    Path("test.tsv").write_text(f"{index}\ta\tb\n5\tx\ty\n")
    command = (*predict, "--input", "test.tsv", "--column", "a", "b", "--tasks", task)
    run_ok(*command, "--glue", index, "--output", "out.tsv")
    header, (number, value) = read(Path("out.tsv").read_text())
    assert (header, number) == (["index", "prediction"], "5")
    assert value in ("0", "1") if task == "qqp" else 0 <= float(value) <= 5


# Wrong flags and files

GLUE = "--input t.tsv --column a --glue"
PAIRS = f"{GLUE} --output out.tsv".replace("--column a", "--column a b")
STS = f"{PAIRS} --tasks sts"


@pytest.mark.parametrize(
    ("flags", "status", "expected"),
    [
        ("--input x.csv", 1, "expected --column"),
        ("--input s.txt --tasks sts", 1, "sts: expected pairs of texts"),
        ("--input s.txt --column a b c", 2, "expected one or two, found 3"),
        (GLUE, 2, "--glue: expected --input, --column and --output"),
        (f"{GLUE} --output out.tsv --probabilities", 2, "expected at most one"),
        (PAIRS, 1, "--glue: expected one task, found sst"),
        (f"{GLUE} --output out.tsv --tasks sst", 1, "expected a task of cola, sst2"),
        (f"{STS} --glue a", 1, "t.tsv, line 2: a: expected a unique whole number"),
        (STS, 1, "t.tsv, line 3: index: expected a unique whole number, found '4'"),
        (f"{STS} --input none.tsv", 1, "none.tsv: expected rows to predict"),
    ],
)
def test_wrong_flags_and_files_are_refused(predict, error_line, flags, status, expected):
    for name, text in {
        "s.txt": "A cat sleeps.\n",
        "t.tsv": "index\ta\tb\n4\tx\ty\n4\tz\ty\n",
        "none.tsv": "index\ta\tb\n",
    }.items():
        Path(name).write_text(text)
    assert expected in error_line(status, *predict, *flags.split())
    assert not list(Path().glob("out.*"))


@pytest.mark.parametrize(
    ("header", "row", "flags"),
    [
        ("", "text {0}\n", ""),
        ("a\tstars\n", "text {0}\t1\n", "--column a --tasks sst"),
        ("a\tb\tindex\n", "text {0}\tother {0}\t{0}\n", "--column a b --tasks sts --glue"),
    ],
    ids=["lines", "columns", "indices"],
)
@pytest.mark.parametrize("times", [0, 2])
def test_a_file_that_changes_is_refused(
    predict, run, tmp_path, monkeypatch, header, row, flags, times
):
    source = tmp_path / ("s.tsv" if header else "s.txt")
    rows = "".join(row.format(i) for i in range(3000))  # more than a buffer holds
    source.write_text(header + rows)
    predict_window = MultiTaskModel.predict_window

    def changing(*args):
        source.write_text(header + rows * times)
        return predict_window(*args)

    monkeypatch.setattr("serving.model.WINDOW", 10)
    monkeypatch.setattr(MultiTaskModel, "predict_window", changing)
    result = run(*predict, "--input", source, *flags.split(), "--output", "out.tsv")
    assert result.returncode == 1
    line = f"run.py: {source}: expected the same file to the end, found it changed"
    assert result.stderr.splitlines()[-1] == line
    assert [file.name for file in tmp_path.iterdir()] == [source.name]


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
