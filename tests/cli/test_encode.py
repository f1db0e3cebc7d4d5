"""--mode encode: a file of sentences -> a memory-mapped array."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tolerances import assert_near, encoder_terms

import cli
from minbert import BiEncoder

ROOT = Path(cli.__file__).parents[1]
TEXTS = [f"sentence {i} " + "word " * (i % 17) for i in range(100)]
ENCODE = ("--mode", "encode", "--encoder", "tiny")


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("\n".join(TEXTS) + "\n", "utf-8")
    return file


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_array_is_what_encode_gives(ran, text, tmp_path, precision):
    target = tmp_path / "new" / "a.npy"
    argv = [*ENCODE, "--input", text, "--output", target, "--precision", precision, "--verbose"]
    found = ran(*argv)
    assert re.search(r"linear layers on a CPU: (mkl|onednn) \(", found.stdout)
    assert "100 x " in found.stdout
    array = np.load(target, mmap_mode="r")
    assert isinstance(array, np.memmap)
    assert array.dtype == np.float32
    expected = BiEncoder.from_pretrained("tiny").encode(TEXTS, precision=precision)
    assert np.array_equal(array, expected)
    assert [path.name for path in target.parent.iterdir()] == ["a.npy"]


@pytest.mark.parametrize("normalize", [True, False])
def test_columns_pooling_and_normalisation(run, tmp_path, normalize):
    source, target = tmp_path / "a.csv", tmp_path / "a.npy"
    source.write_text("id,text\n" + "".join(f"{i},{t}\n" for i, t in enumerate(TEXTS)))
    flag = "--normalize" if normalize else "--no-normalize"
    argv = ["--input", source, "--column", "text", "--pooling", "cls", flag, "--linear", "mkl"]
    assert run(*ENCODE, *argv, "--output", target).returncode == 0
    model = BiEncoder.from_pretrained("tiny", "cls", "mkl")
    assert np.array_equal(np.load(target), model.encode(TEXTS, normalize=normalize))


def test_an_existing_file_is_kept_without_overwrite(run, refused, text, tmp_path):
    target = tmp_path / "a.npy"
    target.write_text("mine")
    argv = [*ENCODE, "--input", text, "--output", target]
    assert "--overwrite would replace it" in refused(1, *argv)
    assert target.read_text() == "mine"
    assert run(*argv, "--overwrite").returncode == 0
    assert len(np.load(target)) == 100


@pytest.mark.parametrize(
    ("status", "argv", "expected"),
    [
        (2, ["--input", "a.txt", "--output", "a.npz"], "expected a name that ends in .npy"),
        (1, ["--input", ".", "--output", "a.npy"], "expected a regular file"),
        (1, ["--input", "pipe", "--output", "a.npy"], "expected a regular file"),
        (1, ["--input", "a.txt", "--output", "dir.npy", "--overwrite"], "found a folder"),
        (1, ["--input", "s.jsonl", "--column", "s", "--output", "a.npy"], "line 2: expected text"),
        (1, ["--input", "empty.txt", "--output", "a.npy"], "expected at least one sentence"),
        (1, ["--input", "a.txt", "--output", "a.npy", "--column", "x"], "a file with columns"),
    ],
)
def test_faults_are_one_line_and_leave_nothing(
    refused, text, tmp_path, monkeypatch, status, argv, expected
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "s.jsonl").write_text('{"s": "a"}\n{"s": "\\ud800"}\n')
    (tmp_path / "dir.npy").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert expected in refused(status, *ENCODE, *argv)
    assert [path.name for path in tmp_path.glob("*.np*")] == ["dir.npy"]


def test_an_interrupt_leaves_nothing(run, text, tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(BiEncoder, "encode_window", stop)
    found = run(*ENCODE, "--input", text, "--output", tmp_path / "a.npy")
    line = found.stderr.splitlines()[-1]  # after a progress bar
    assert (found.returncode, "interrupted" in line) == (130, True)
    assert "was not written" in line
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_file_that_changed_meanwhile_is_refused(run, text, tmp_path, monkeypatch):
    window = BiEncoder.encode_window

    def grow(*args):
        with text.open("a") as file:
            file.write("more\n" * 10_000)
        return window(*args)

    monkeypatch.setattr("minbert.bi_encoder.WINDOW", 10)
    monkeypatch.setattr(BiEncoder, "encode_window", grow)
    found = run(*ENCODE, "--input", text, "--output", tmp_path / "a.npy")
    assert found.returncode == 1
    assert "found the file changed meanwhile" in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("linear", ["mkl", "auto"])
def test_compiled_layers_give_the_same_array(ran, text, tmp_path, linear):
    arrays = []
    for flags in ([], ["--compile"]):
        argv = [*ENCODE, "--input", text, "--linear", linear, "--overwrite", *flags]
        ran(*argv, "--output", tmp_path / "a.npy")
        arrays.append(np.load(tmp_path / "a.npy"))
    config = BiEncoder.from_pretrained("tiny").encoder.config
    assert_near(*arrays, encoder_terms(config, config.max_tokens))


def test_compiling_without_a_compiler_is_one_line(refused, text, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    argv = [*ENCODE, "--input", text, "--output", tmp_path / "a.npy", "--compile"]
    assert "expected a C++ compiler" in refused(1, *argv)


PEAK = """
import sys
from pathlib import Path
from cli import main
from minbert import BiEncoder
peak, pooled = 0, BiEncoder.pooled
def measured(*args):
    global peak
    result = pooled(*args)
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {line.split(":")[0]: line.split()[1] for line in lines if "kB" in line}
    peak = max(peak, int(found["RssAnon"]))
    return result
BiEncoder.pooled = measured  # called once per batch
assert main(sys.argv[1:]) == 0
print("peak", peak // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_does_not_grow_with_the_file(tmp_path):
    peaks = []
    for lines in (10_000, 100_000):
        source = tmp_path / f"{lines}.txt"
        source.write_text("".join(f"short {i % 97} sentence\n" for i in range(lines)))
        argv = [*ENCODE, "--input", str(source), "--output", str(tmp_path / f"{lines}.npy")]
        command = [sys.executable, "-c", PEAK, *argv]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        peaks.append(int(ended.stdout.split()[-1]))
    assert len(np.load(tmp_path / "100000.npy", mmap_mode="r")) == 100_000
    assert peaks[1] - peaks[0] < 50  # MB; the array alone has 51
