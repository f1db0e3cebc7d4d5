"""Programs end with a one-line error and an exit status, without a traceback."""

import os
import subprocess
import sys
import warnings

import pytest

from common.entry_point import if_interrupted, run_and_report
from common.errors import TruncationWarning, UnknownEncoderError, UserError
from minbert.tokenizer import warn_of_truncation


def fail(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (UserError("a file: expected this,\nfound that"), 1, "a file: expected this, found that"),
        (UnknownEncoderError("no such encoder"), 2, "no such encoder"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (KeyboardInterrupt("it goes on"), 130, "interrupted; it goes on"),
        (OSError(28, "No space left on device", "a/file"), 1, "a/file: No space left on device"),
        (MemoryError(), 1, "out of memory: use a smaller --encoder or less text at a time"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_user_errors_print_one_line(error, status, line, capsys):
    assert run_and_report("program", fail(error)) == status
    assert capsys.readouterr().err == f"program: {line}\n"


def test_a_standard_output_that_is_no_terminal_has_utf_8():
    code = "from common.entry_point import start; start('p', lambda: print('日本'))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert found.stdout.decode() == "日本\n"
    assert not found.stderr


def test_a_closed_standard_output_is_no_error():
    code = "from common.entry_point import start; start('p', lambda: print('a line'))"
    command = ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, code]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_signal_during_the_clean_up_after_an_error_does_not_hide_the_error(capsys):
    def work():
        with if_interrupted("the same command goes on"):
            try:
                raise UserError("one process run_and_report")
            finally:
                try:
                    raise RuntimeError("connection closed")
                finally:
                    raise KeyboardInterrupt

    assert run_and_report("program", work) == 1
    assert capsys.readouterr().err == "program: one process run_and_report\n"


def test_an_error_of_ours_is_not_hidden():
    with pytest.raises(RuntimeError, match="a bug"):
        run_and_report("program", fail(RuntimeError("a bug")))


def test_no_status_is_success():
    assert run_and_report("program", lambda: None) == 0
    assert run_and_report("program", lambda: 3) == 3


def python(text):
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=600
    )


def test_sigterm_prints_one_line():
    found = python(
        "import os, signal\n"
        "from common.entry_point import start\n"
        "start('program', lambda: os.kill(os.getpid(), signal.SIGTERM))"
    )
    assert found.returncode == 130
    assert found.stderr == "program: interrupted\n"


@pytest.mark.parametrize(("error", "told"), [("OSError(28, 'full')", False), ("KeyError()", True)])
def test_os_errors_of_a_thread_print_no_traceback(error, told):
    found = python(
        "import threading\n"
        "from common.entry_point import start\n"
        f"def fails(): raise {error}\n"
        "def work():\n"
        "    thread = threading.Thread(target=fails)\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "start('program', work)"
    )
    assert found.returncode == 0
    assert ("Traceback" in found.stderr) is told


def test_truncation_warnings_print_one_line_each(capsys):
    def work():
        for _ in range(2):
            warn_of_truncation(1, 1000, "sentences", 256)

    line = "program: 1 of 1,000 sentences is longer than 256 tokens and was cut\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_and_report("program", work) == 0
        assert capsys.readouterr() == ("", 2 * line)
        with pytest.raises(TruncationWarning):  # afterwards, warnings are as they were
            work()


def test_other_warnings_stay_unchanged():
    with pytest.warns(UserWarning, match="another"):
        run_and_report("program", lambda: warnings.warn("another", stacklevel=1))
