"""Precision auto: what it becomes, where it is printed and stored, and how runs go on with it."""

import re
import shutil

import numpy as np
import pytest
import torch
from run_files import config, prediction_bytes

from minbert import BiEncoder
from minbert.precision import choose_precision

CPU = torch.device("cpu")
SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--limit", 16, "--epochs", 1)
LINES = {
    True: "precision: bf16 (this CPU has bfloat16 instructions)",
    False: "precision: fp32 (this CPU has no bfloat16 instructions)",
}
NAMES = {True: "bf16", False: "fp32"}


def lines(printed):
    return [line for line in printed.splitlines() if line.startswith("precision: ")]


@pytest.fixture(params=[True, False], ids=["bfloat16", "no bfloat16"])
def has(request, bfloat16):
    bfloat16(request.param)
    return request.param


def test_auto_follows_the_cpu_and_an_explicit_precision_does_not(has):
    assert str(choose_precision("auto", CPU, False)) == LINES[has]
    for name in ("fp32", "bf16"):
        assert choose_precision(name, CPU, False) == (name, "as requested")
    found = choose_precision("auto", CPU, bilstm=True)
    assert found == ("fp32", "a BiLSTM has no bf16")


@pytest.mark.parametrize(
    ("capability", "hip", "expected"),
    [((7, 5), None, "fp32"), ((8, 0), None, "bf16"), ((9, 0), None, "bf16"), ((6, 0), "6", "bf16")],
    ids=["T4", "A100", "H100", "AMD"],
)
def test_auto_follows_the_gpu(bfloat16, monkeypatch, capability, hip, expected):
    bfloat16(expected == "fp32")  # the CPU does not matter
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.version, "hip", hip)
    found = choose_precision("auto", torch.device("cuda:0"), False)
    no = "no " if expected == "fp32" else ""
    assert found == (expected, f"this GPU has {no}bfloat16 instructions")


def test_a_run_prints_and_stores_what_auto_became(run_ok, tmp_path, has):
    printed = run_ok(*SST, "--output", tmp_path / "auto").stdout
    assert lines(printed) == [LINES[has]]
    assert config(tmp_path / "auto")["precision"] == NAMES[has]
    explicit = run_ok(*SST, "--precision", NAMES[has], "--output", tmp_path / "same").stdout
    assert not lines(explicit)
    assert config(tmp_path / "auto") == config(tmp_path / "same")
    assert prediction_bytes(tmp_path / "auto") == prediction_bytes(tmp_path / "same")


def test_a_run_goes_on_in_the_precision_that_it_began_with(
    run_ok, stopped, finished, bfloat16, tmp_path
):
    """On another machine, with the same command."""
    first = True
    begun = "--precision", NAMES[first]
    copy = shutil.copytree(stopped(*begun), tmp_path / "copy")
    bfloat16(not first)
    printed = run_ok(*finished[1], "--output", copy, "--resume").stdout
    assert not lines(printed)
    assert re.search("^resumed after step [0-9]+, epoch 1 of 2$", printed, re.MULTILINE)
    assert config(copy)["precision"] == NAMES[first]
    run_ok(*finished[1], *begun, "--output", tmp_path / "whole")
    assert prediction_bytes(copy) == prediction_bytes(tmp_path / "whole")
    assert lines(run_ok(*finished[1], "--output", copy, "--overwrite").stdout) == [LINES[not first]]
    assert config(copy)["precision"] == NAMES[not first]


def test_modes_that_use_an_encoder_print_the_precision(run_ok, finished, tmp_path, has):
    (tmp_path / "s.txt").write_text("a film\na question\nmusic\n")
    array = tmp_path / "s.npy"
    encode = ("--mode", "encode", "--encoder", "tiny", "--output", array)
    for argv in (encode, ("--mode", "predict", "--run", finished[0])):
        result = run_ok(*argv, "--input", tmp_path / "s.txt")
        assert lines(result.stderr) == [LINES[has]], argv
        assert not lines(result.stdout)
    texts = (tmp_path / "s.txt").read_text().splitlines()
    expected = BiEncoder.from_pretrained("tiny").encode(texts, NAMES[has])
    assert np.array_equal(np.load(array), expected)
