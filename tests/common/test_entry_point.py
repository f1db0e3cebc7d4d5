"""Programs end with a one-line error and an exit status, without a traceback."""

import subprocess
import sys
import warnings

import pytest
import torch

from common.entry_point import run_and_report
from common.errors import SettingsError, UserError
from minbert.tokenizer import warn_of_truncation

OUT_OF_MEMORY = "out of memory: use a smaller --encoder, --micro-batch or --batch-size"


def fail(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (UserError("a file: expected this,\nfound that"), 1, "a file: expected this, found that"),
        (SettingsError("lr: no"), 2, "lr: no"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (KeyboardInterrupt("it goes on"), 130, "interrupted; it goes on"),
        (OSError(28, "No space left on device", "a/file"), 1, "a/file: No space left on device"),
        (MemoryError(), 1, OUT_OF_MEMORY),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), 1, OUT_OF_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 1, OUT_OF_MEMORY),
        (ModuleNotFoundError("no", name="onnx"), 1, "onnx is missing: pip install onnx"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_user_errors_print_one_line(error, status, line, capsys):
    assert run_and_report(fail(error)) == status
    assert capsys.readouterr().err == f"run.py: {line}\n"


def test_an_error_of_ours_is_not_hidden():
    with pytest.raises(RuntimeError, match="a bug"):
        run_and_report(fail(RuntimeError("a bug")))


@pytest.mark.parametrize("rank", ["0", "1"])
def test_only_the_first_process_prints_an_error_that_all_have(rank, capsys, monkeypatch):
    monkeypatch.setenv("RANK", rank)
    assert run_and_report(fail(UserError("no"))) == 1
    assert run_and_report(fail(OSError("full"))) == 1  # of this process alone
    assert capsys.readouterr().err == "run.py: no\n" * (rank == "0") + "run.py: full\n"


def test_a_signal_ends_a_program_with_its_status():
    work = "os.kill(os.getpid(), signal.SIGTERM)"
    code = f"import os, signal; from common.entry_point import start; start(lambda: {work})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (130, "run.py: interrupted\n")


def test_notices_print_one_line_each(capsys):
    def work():
        for _ in range(2):
            warn_of_truncation(1, 1000, "sentences", 256)

    line = "run.py: 1 of 1,000 sentences is longer than 256 tokens and was cut\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_and_report(work) == 0
    assert capsys.readouterr() == ("", 2 * line)
