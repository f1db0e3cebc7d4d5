"""Mode encode: the sentences of a file and their embeddings."""

import json
from pathlib import Path

import numpy as np
import pytest

from minbert import BiEncoder

TEXTS = [f"sentence {i} " + "word " * (i % 17) for i in range(100)]
ENCODE = ("--mode", "encode", "--encoder", "tiny")
SENTENCES = ["A cat sleeps.", "The sun is up.", "A cat is asleep.", "It rains.", "The sun is up!"]


def write_lines(file, lines):
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


@pytest.fixture
def text(tmp_path):
    return write_lines(tmp_path / "a.txt", TEXTS)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_array_equals_that_of_python(run_ok, text, tmp_path, precision):
    target = tmp_path / "new" / "a.npy"
    argv = [*ENCODE, "--input", text, "--output", target, "--precision", precision]
    result = run_ok(*argv)
    assert "100 x " in result.stdout
    array = np.load(target, mmap_mode="r")
    assert isinstance(array, np.memmap)
    assert array.dtype == np.float32
    expected = BiEncoder.from_pretrained("tiny").encode(TEXTS, precision=precision)
    assert np.array_equal(array, expected)
    assert [path.name for path in target.parent.iterdir()] == ["a.npy"]


@pytest.mark.parametrize("normalize", [True, False])
def test_column_pooling_and_normalisation_are_those_of_the_flags(run_ok, tmp_path, normalize):
    source, target = tmp_path / "a.csv", tmp_path / "a.npy"
    write_lines(source, ["id,text", *(f"{i},{t}" for i, t in enumerate(TEXTS))])
    flags = ["--normalize"] if normalize else ["--normalize", "false"]
    argv = ["--input", source, "--text", "text", "--pooling", "cls", *flags]
    run_ok(*ENCODE, *argv, "--output", target)
    model = BiEncoder.from_pretrained("tiny", "cls")
    assert np.array_equal(np.load(target), model.encode(TEXTS, normalize=normalize))


@pytest.mark.parametrize(
    ("status", "argv", "expected"),
    [
        (2, "--input a.txt --output a.npz", "the name must end in .npy"),
        (1, "--input a.txt --output a.npy --text x", "expected a column 'x'"),
    ],
)
def test_wrong_files_are_refused(error_line, text, cwd, status, argv, expected):
    assert expected in error_line(status, *ENCODE, *argv.split())
    assert not [*cwd.glob("*.np*")]


def test_a_run_of_pairs_in_one_sequence_embeds_no_single_texts(text, cwd, run_ok, error_line):
    joint = ("--mode", "single", "--task", "sts", "--pair", "joint", "--encoder", "tiny")
    run_ok(*joint, "--epochs", "1", "--limit", "8", "--dev-limit", "8", "--output", "run")
    command = ("--mode", "encode", "--input", text, "--output", "no.npy")
    line = "the run reads pairs as one sequence, and cannot embed single texts: sts"
    assert line in error_line(1, *command, "--run", "run")
    run_ok("--mode", "export", "--run", "run", "--output", "out")
    card = Path("out", "README.md").read_text()
    assert "The encoder was not trained to embed single texts." in card
    assert ".encode(" not in card


def test_empty_texts_keep_their_row_and_are_counted(run_ok, tmp_path):
    """The same rule for blank lines and null: NaN in the array."""
    texts = [" ", *SENTENCES, "", "A cat sleeps."]
    rows = [json.dumps({"s": text or None}) for text in texts]
    lines, column = write_lines(tmp_path / "s.txt", texts), write_lines(tmp_path / "s.jsonl", rows)
    expected = BiEncoder.from_pretrained("tiny").encode(SENTENCES)
    line = "run.py: 2 of 8 rows have an empty text, and"
    for given in (("--input", lines), ("--input", column, "--text", "s")):
        target = tmp_path / "a.npy"
        result = run_ok(*ENCODE, *given, "--output", target, "--overwrite")
        assert f"{line} NaN in place of an embedding" in result.stderr.splitlines()
        array = np.load(target)
        assert np.flatnonzero(np.isnan(array).any(1)).tolist() == [0, 6]
        assert np.isnan(array[[0, 6]]).all()
        assert np.array_equal(array[1:6], expected)
