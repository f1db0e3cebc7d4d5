"""predict, mine, similar, export and demo from the shell: what goes in, what comes out."""

import csv
import io
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import cli
from serving import MultiTaskModel
from serving.prediction_writer import prediction_fields

ROOT = Path(cli.__file__).parents[1]
PREDICT = ("--mode", "predict", "--run")
SENTENCES = ["A cat sleeps.", "The sun is up.", "A cat is asleep.", "It rains.", "The sun is up!"]


@pytest.fixture
def sentences(tmp_path):
    (tmp_path / "s.txt").write_text("\n".join(SENTENCES) + "\n")
    return tmp_path / "s.txt"


def stdin(text):
    content = text if isinstance(text, bytes) else text.encode()
    return io.TextIOWrapper(io.BytesIO(content))


def read(text, delimiter="\t"):
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


@pytest.mark.slow
def test_predict_reads_standard_input_of_a_shell(finished):
    command = [sys.executable, "run.py", *PREDICT, str(finished[0])]
    found = subprocess.run(
        command, input="a film to love\n", cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert (found.returncode, found.stderr) == (0, "")
    header, row = read(found.stdout)
    assert header == ["text", "sst"]
    assert row[0] == "a film to love"


def test_lines_with_a_tab_are_pairs(finished, ran, monkeypatch):
    monkeypatch.setattr(sys, "stdin", stdin("a cat\ta dog\nthe sun\tthe moon\n"))
    found = ran(*PREDICT, finished[0], "--probabilities")
    header, *rows = read(found.stdout)
    assert header[:3] == ["text", "other text", "sst"]
    assert "sst: very positive" in header
    assert len(rows) == 2
    shares = [float(v) for h, v in zip(header, rows[0], strict=True) if h.startswith("sst:")]
    assert sum(shares) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\tb\tc\n", "line 1: expected one text, or two with a tab"),
        ("a\nb\tc\n", "row 2: expected as many texts as in the rows before, 1, found 2"),
        (b"a\nb\xff\n", "standard input, line 2: expected UTF-8 text, found byte 0xff"),
    ],
)
def test_lines_that_cannot_be_read_are_refused(finished, refused, monkeypatch, text, expected):
    monkeypatch.setattr(sys, "stdin", stdin(text))
    assert expected in refused(1, *PREDICT, finished[0])


def test_no_line_gives_nothing(finished, ran, monkeypatch):
    monkeypatch.setattr(sys, "stdin", stdin(""))
    assert ran(*PREDICT, finished[0]).stdout == ""


def test_a_file_and_its_columns(finished, run, ran, tmp_path):
    source = tmp_path / "pairs.csv"
    source.write_text('key,left,"right, too"\n1,a cat,"a ""dog"", or so"\n2,the sun,the moon\n')
    target = tmp_path / "answers" / "out.csv"
    command = (*PREDICT, finished[0], "--input", source, "--column", "left", "right, too")
    found = ran(*command, "--output", target, "--tasks", "sts", "qqp")
    assert found.stdout.startswith("2 rows, ")
    rows = read(target.read_text(), ",")
    assert rows[0] == ["left", "right, too", "sts", "qqp"]
    assert rows[1][:2] == ["a cat", 'a "dog", or so']
    assert "--overwrite would replace it" in run(*command, "--output", target).stderr
    ran(*command, "--output", target, "--overwrite")
    assert [file.name for file in target.parent.iterdir()] == ["out.csv"]


LABELLED = (*PREDICT, "RUN", "--input", "l.csv", "--column", "a", "--output", "out.csv", "--label")


def labelled(finished, flags=()):
    return [finished[0] if one == "RUN" else one for one in (*LABELLED, "stars", *flags)]


def test_metrics_of_a_labelled_file(finished, run, ran, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = ["a film to love", "dull", "fine", "a cat", "the moon"]
    rows = [f"{text},{stars}" for text, stars in zip(texts, "0123", strict=False)]
    Path("l.csv").write_text("\n".join(["a,stars", *rows, f"{texts[-1]},"]) + "\n")
    found = ran(*labelled(finished))
    said = [row[1] for row in read(Path("out.csv").read_text(), ",")[1:]]
    assert len(said) == 5
    names = ["very negative", "negative", "neutral", "positive", "very positive"]
    right = sum(one == names[place] for place, one in enumerate(said[:4])) / 4
    lines = [line.split() for line in found.stdout.splitlines()]
    assert ["task", "metric", "4", "rows"] in lines
    assert ["sst", "accuracy", f"{right:.4f}"] in lines
    Path("l.csv").write_text("\n".join(["a,stars", *(f"x,{name}" for name in names)]) + "\n")
    again = run(*labelled(finished, ["--overwrite"]))
    assert ["sst", "accuracy", "0.2000"] in [line.split() for line in again.stdout.splitlines()]


PAIR_ROWS = ("--output", "o.tsv", "--tasks", "sts", "--column", "a", "b")


def test_what_glue_takes(ran, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "glue" / "RTE"
    folder.mkdir(parents=True)
    labels = ("entailment", "not_entailment")
    for split in ("train", "dev"):
        rows = [f'{n}\ta "cat {n}\tcats\t{labels[n % 2]}' for n in range(12)]
        lines = ["index\tsentence1\tsentence2\tlabel", *rows]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    Path("test.tsv").write_text('index\tsentence1\tsentence2\n7\tso "he\tsaid\n3\tx\ty\n')
    train = ("--mode", "single", "--task", "rte", "--data", tmp_path, "--encoder", "tiny")
    ran(*train, "--epochs", "1", "--output", "rte")
    command = (*PREDICT, "rte", "--input", "test.tsv", "--column", "sentence1", "sentence2")
    ran(*command, "--glue", "--output", "RTE.tsv")
    ran(*command, "--quotes", "no", "--output", "table.tsv")
    said = [row[2].replace(" ", "_") for row in read(Path("table.tsv").read_text())[1:]]
    assert set(said) <= set(labels)
    expected = [["index", "prediction"], ["7", said[0]], ["3", said[1]]]
    assert read(Path("RTE.tsv").read_text()) == expected


def test_an_index_of_another_name_and_whole_numbers_of_classes(finished, ran, tmp_path):
    source, target = tmp_path / "test.tsv", tmp_path / "QQP.tsv"
    source.write_text("id\ta\tb\n5\tx\ty\n")
    command = (*PREDICT, finished[0], "--input", source, "--column", "a", "b", "--tasks", "qqp")
    ran(*command, "--glue", "id", "--output", target)
    header, row = read(target.read_text())
    assert header == ["index", "prediction"]
    assert row in (["5", "0"], ["5", "1"])
    source.write_text("index\ta\tb\n5\tx\ty\n")
    sts = [*command[:-1], "sts", "--glue", "--output", target, "--overwrite"]
    ran(*sts)
    assert 0 <= float(read(target.read_text())[1][1]) <= 5


@pytest.mark.parametrize(
    ("flags", "status", "expected"),
    [
        (("--output", "o.csv", "--tasks", "sst"), 2, "expected a name that ends in .tsv"),
        ((), 2, "--glue: expected --input, --column and --output"),
        (("--output", "o.tsv", "--probabilities"), 2, "expected at most one"),
        (("--output", "o.tsv", "--quotes", "yes"), 2, "expected --quotes no"),
        (("--output", "o.tsv", "--column", "a", "b"), 1, "--glue: expected one task, found sst"),
        (("--output", "o.tsv", "--tasks", "sst"), 1, "expected a task of cola, sst2"),
        (
            (*PAIR_ROWS, "--glue", "number"),
            1,
            "expected a column 'number', found index, a, b",
        ),
        ((*PAIR_ROWS, "--glue", "a"), 1, "t.tsv, line 2: a: expected a unique whole number"),
        (PAIR_ROWS, 1, "t.tsv, line 3: index: expected a unique whole number, found '4'"),
        ((*PAIR_ROWS, "--input", "none.tsv"), 1, "none.tsv: expected rows to predict"),
    ],
)
def test_what_glue_does_not_take(finished, refused, tmp_path, monkeypatch, flags, status, expected):
    monkeypatch.chdir(tmp_path)
    Path("t.tsv").write_text("index\ta\tb\n4\tx\ty\n4\tz\ty\n")
    Path("none.tsv").write_text("index\ta\tb\n")
    command = (*PREDICT, finished[0], "--input", "t.tsv", "--column", "a", "--glue")
    assert expected in refused(status, *command, *flags)
    assert not list(tmp_path.glob("o.*"))


@pytest.mark.parametrize(
    ("content", "flags", "status", "expected"),
    [
        ("a,stars\nx,1\ny,7\n", (), 1, "l.csv, line 3: stars: expected a whole number from 0 to 4"),
        ("a,stars\nx,\n", (), 1, "sst: expected a row with a label, found none"),
        (
            "a,stars\nx,1\n",
            ("--column", "a", "stars"),
            1,
            "--label: expected one task",
        ),
    ],
)
def test_labels_that_cannot_be_judged_are_refused(
    finished, refused, tmp_path, monkeypatch, content, flags, status, expected
):
    monkeypatch.chdir(tmp_path)
    Path("l.csv").write_text(content)
    assert expected in refused(status, *labelled(finished, flags))
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("flags", "status", "expected"),
    [
        (("--column", "a"), 2, "--column: expected --input FILE"),
        (("--input", "s.txt", "--label", "a"), 2, "--label: expected --input, --column and"),
        (("--input", "x.csv"), 1, "expected --column"),
        (("--input", "s.txt", "--output", "x.json"), 2, "ends in .csv or .tsv"),
        (("--overwrite",), 2, "--overwrite: expected --output"),
        (("--input", "s.txt", "--tasks", "sts"), 1, "sts: expected pairs of texts"),
        (("--input", "s.txt", "--column", "a", "b", "c"), 2, "expected one or two, found 3"),
    ],
)
def test_what_cannot_be_predicted_is_refused_in_a_line(
    finished, sentences, refused, monkeypatch, flags, status, expected
):
    monkeypatch.chdir(sentences.parent)
    assert expected in refused(status, *PREDICT, finished[0], *flags)


def test_the_most_similar_pairs(sentences, run, ran, tmp_path):
    same, folder = tmp_path / "same.tsv", tmp_path / "folder.tsv"
    same.symlink_to(sentences)
    folder.mkdir()
    mine = ("--mode", "mine", "--input", sentences, "--encoder", "tiny", "--top", "2")
    found = ran(*mine)
    header, first, second = read(found.stdout)
    assert header == ["cosine", "row", "other row", "sentence", "other sentence"]
    assert float(first[0]) >= float(second[0])
    assert [SENTENCES[int(first[1]) - 1], SENTENCES[int(first[2]) - 1]] == first[3:]
    array = tmp_path / "e.npy"
    encode = ("--mode", "encode", "--input", sentences, "--encoder", "tiny", "--output", array)
    ran(*encode)
    assert run(*mine, "--embedded", array).stdout == found.stdout
    assert "ends in .tsv" in run(*mine, "--output", tmp_path / "p.csv").stderr
    assert "another --output than" in run(*mine, "--output", same, "--overwrite").stderr
    assert "found a folder" in run(*mine, "--output", folder, "--overwrite").stderr
    target = tmp_path / "pairs.tsv"
    ran(*mine, "--output", target)
    assert target.read_text() == found.stdout
    np.save(array, np.full((5, 32), np.nan, np.float32))
    assert "found others in row 1" in run(*mine, "--embedded", array).stderr
    array.write_bytes(b"")
    assert "expected an array" in run(*mine, "--embedded", array).stderr
    np.save(array, np.zeros((3, 32), np.float32))
    line = run(*mine, "--embedded", array).stderr.splitlines()[-1]
    assert "expected 5 x 32 float32, one row per sentence, found 3 x 32" in line


def test_the_sentences_nearest_to_a_query(sentences, finished, ran, refused):
    similar = ("--mode", "similar", "--input", sentences, "--top", "2", "--query")
    found = ran(*similar, "It rains.", "--run", finished[0])
    lines = found.stdout.splitlines()
    assert len(lines) == 4
    assert lines[2].split() == ["1.0000", "4", "It", "rains."]
    assert "expected a text" in refused(2, *similar, " ")
    both = ("--run", finished[0], "--encoder", "tiny")
    assert "expected at most one" in refused(2, *similar, "x", *both)


@pytest.mark.slow
def test_the_page_is_served_until_it_is_ended(finished, sentences):
    import socket
    import urllib.request

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "run.py", "--mode", "demo", "--run", str(finished[0])]
    command += ["--input", str(sentences), "--port", port]
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


LONG = "a cat sleeps " * 100


def test_texts_that_are_cut_are_counted_on_standard_error(finished, run, sentences, tmp_path):
    sentences.write_text("\n".join([*SENTENCES, LONG, LONG + "no"]) + "\n")
    files = ("--input", sentences)
    line = "run.py: 2 of 7 {} are longer than 128 tokens and were cut"
    found = run(*PREDICT, finished[0], *files)
    assert found.stderr.splitlines() == [line.format("rows")]
    assert len(read(found.stdout)) == 8
    flags = ("--encoder", "tiny", *files)
    found = run("--mode", "encode", *flags, "--output", tmp_path / "a.npy")
    assert line.format("sentences") in found.stderr.splitlines()
    found = run("--mode", "mine", *flags)
    assert line.format("sentences") in found.stderr.splitlines()
    assert read(found.stdout)[0] == ["cosine", "row", "other row", "sentence", "other sentence"]
    kept = ("--embedded", tmp_path / "a.npy")
    found = run("--mode", "similar", *flags, *kept, "--query", LONG.strip())
    expected = "run.py: 1 of 1 sentences is longer than 128 tokens and was cut"
    assert found.stderr.splitlines() == [expected]


@pytest.mark.parametrize(
    ("header", "row", "flags"),
    [
        ("", "text {0}\n", ""),
        ("a\tstars\n", "text {0}\t1\n", "--column a --tasks sst --label stars"),
        ("a\tb\tindex\n", "text {0}\tother {0}\t{0}\n", "--column a b --tasks sts --glue"),
    ],
    ids=["lines", "labels", "indices"],
)
@pytest.mark.parametrize("times", [0, 2])
def test_a_file_that_changes_while_it_is_read_is_refused(
    finished, run, tmp_path, monkeypatch, header, row, flags, times
):
    source, target = tmp_path / ("s.tsv" if header else "s.txt"), tmp_path / "out.tsv"
    rows = "".join(row.format(i) for i in range(3000))  # more than a buffer holds
    source.write_text(header + rows)
    predict = MultiTaskModel.predict_window

    def changing(*args):
        source.write_text(header + rows * times)
        return predict(*args)

    monkeypatch.setattr("serving.model.WINDOW", 10)
    monkeypatch.setattr(MultiTaskModel, "predict_window", changing)
    command = (*PREDICT, finished[0], "--input", source, *flags.split(), "--output", target)
    found = run(*command)
    assert found.returncode == 1
    line = f"run.py: {source}: expected the same file to the end, found it changed"
    assert found.stderr.splitlines()[-1] == line
    assert [file.name for file in tmp_path.iterdir()] == [source.name]


def test_a_file_that_ends_early_after_a_window_is_refused(finished, run, tmp_path, monkeypatch):
    source, target = tmp_path / "s.txt", tmp_path / "out.tsv"
    source.write_text(f"{'a text':63}\n" * 3000)
    window = source.stat().st_blksize // 64  # a buffer's rows: after them, the file is read again

    def shrinking(*args):
        os.truncate(source, 64 * window)
        return prediction_fields(*args)

    monkeypatch.setattr("serving.model.WINDOW", window)
    monkeypatch.setattr("serving.prediction_writer.prediction_fields", shrinking)
    found = run(*PREDICT, finished[0], "--input", source, "--output", target)
    assert found.returncode == 1
    assert "found it changed" in found.stderr.splitlines()[-1]
    assert [file.name for file in tmp_path.iterdir()] == ["s.txt"]
