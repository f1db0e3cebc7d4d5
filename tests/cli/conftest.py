"""The command line within the process, small data, and runs that several tests use."""

import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from run_files import SAMPLE

import cli
from multitask.loop.trainer import Trainer

Result = subprocess.CompletedProcess  # returncode, stdout, stderr


@pytest.fixture(autouse=True, scope="module")
def few_resamples(quick_comparisons: None) -> None:
    """No interval and no figure is tested here."""


@pytest.fixture
def cwd(tmp_path, monkeypatch) -> Path:
    """The temporary folder of the test, as the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys) -> Callable[..., Result]:
    """`run("--mode", ...)` is the same within this process, many times faster."""

    def call(*argv: object) -> Result:
        capsys.readouterr()
        arguments = [str(a) for a in argv]
        try:
            status = cli.main(arguments)
        except SystemExit as error:
            status = error.code
        printed = capsys.readouterr()
        return Result(arguments, status, printed.out, printed.err)

    return call


@pytest.fixture
def run_ok(run) -> Callable[..., Result]:
    """`run_ok(...)` is `run(...)` of a command that must succeed."""

    def call(*argv: object) -> Result:
        result = run(*argv)
        assert result.returncode == 0, result.stderr
        return result

    return call


@pytest.fixture
def error_line(run) -> Callable[..., str]:
    """`error_line(status, ...)` returns the only line on stderr of a command that must fail."""

    def call(status: int, *argv: object) -> str:
        result = run(*argv)
        assert result.returncode == status, result.stderr
        (line,) = result.stderr.splitlines()
        assert line.startswith("run.py: ")
        return line

    return call


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Path:
    """The first 40 examples of every file of the sample; read only."""
    folder = tmp_path_factory.mktemp("data")
    for path in SAMPLE.glob("*.csv"):
        lines = path.read_bytes().splitlines(keepends=True)
        (folder / path.name).write_bytes(b"".join(lines[:41]))
    return folder


@pytest.fixture
def data(small, tmp_path) -> Path:
    """A copy of the small data that a test may change."""
    return Path(shutil.copytree(small, tmp_path / "data"))


@pytest.fixture(scope="session")
def finished(small, tmp_path_factory) -> tuple[Path, list[str]]:
    """The folder of a finished small run of three tasks, and its command; read only."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    command = [
        *("--mode", "multitask", "--encoder", "tiny", "--data", str(small)),
        *("--epochs", "2", "--sampling", "annealed", "--pcgrad"),
    ]
    assert cli.main([*command, "--output", str(folder)]) == 0
    return folder, command


@pytest.fixture
def run_copy(finished, tmp_path) -> tuple[Path, list[str]]:
    """A copy of the finished run that a test may change, and its command with --output."""
    copy = Path(shutil.copytree(finished[0], tmp_path / "copy"))
    return copy, [*finished[1], "--output", str(copy)]


@pytest.fixture(scope="session")
def stopped(finished, tmp_path_factory) -> Callable[..., Path]:
    """`stopped(*flags)`: folder of the same run with further flags, interrupted after an epoch."""
    folders: dict[tuple[str, ...], Path] = {}
    finish = Trainer.score_epoch

    def stop(*args: object) -> None:
        finish(*args)
        raise KeyboardInterrupt

    def make(*flags: str) -> Path:
        if flags not in folders:
            folder = tmp_path_factory.mktemp("stopped") / "run"
            with mock.patch.object(Trainer, "score_epoch", stop):
                assert cli.main([*finished[1], *flags, "--output", str(folder)]) == 130
            folders[flags] = folder
        return folders[flags]

    return make


@pytest.fixture
def interrupted(finished, stopped, tmp_path) -> tuple[Path, list[str]]:
    """A copy of the same run stopped after its first epoch, and its command with --output."""
    copy = Path(shutil.copytree(stopped(), tmp_path / "interrupted"))
    return copy, [*finished[1], "--output", str(copy)]


@pytest.fixture
def stdin(monkeypatch) -> Callable[[bytes], None]:
    """`stdin(text)` sets the standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
