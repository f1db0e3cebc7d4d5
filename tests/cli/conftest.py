"""The command line in process, small data, and the few runs that many tests look at."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import cli
import tasks.sample
from multitask.trainer import Trainer

ROOT = Path(cli.__file__).parents[1]
SAMPLE = Path(tasks.sample.__file__).parent
Result = subprocess.CompletedProcess  # returncode, stdout, stderr


@pytest.fixture(scope="session")
def process() -> Callable[..., Result]:
    """`process("--mode", ...)` runs run.py as a user does."""

    def start(*argv: object) -> Result:
        command = [sys.executable, "run.py", *map(str, argv)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)

    return start


@pytest.fixture
def run(capsys) -> Callable[..., Result]:
    """`run("--mode", ...)` is the same within this process, many times faster."""

    def call(*argv: object) -> Result:
        capsys.readouterr()
        arguments = [str(a) for a in argv]
        try:
            status = cli.main(arguments)
        except SystemExit as ended:
            status = ended.code
        shown = capsys.readouterr()
        return Result(arguments, status, shown.out, shown.err)

    return call


@pytest.fixture
def ran(run) -> Callable[..., Result]:
    """The same of a command that has to end well."""

    def call(*argv: object) -> Result:
        found = run(*argv)
        assert found.returncode == 0, found.stderr
        return found

    return call


@dataclass
class Refusal:
    """Runs a command that must end with `status` and one line on stderr, and returns the line."""

    run: Callable[..., Result]

    def __call__(self, status: int, *argv: object) -> str:
        found = self.run(*argv)
        assert found.returncode == status, found.stderr
        lines = found.stderr.splitlines()
        assert len(lines) == 1, found.stderr
        assert lines[0].startswith("run.py: ")
        return lines[0]


@pytest.fixture
def refused(run) -> Refusal:
    return Refusal(run)


def cut(source: Path, target: Path, rows: int) -> None:
    """The first rows of every file of the sample."""
    target.mkdir(parents=True)
    for path in source.glob("*.csv"):
        lines = path.read_bytes().splitlines(keepends=True)
        (target / path.name).write_bytes(b"".join(lines[: rows + 1]))


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Path:
    """40 examples a file of the sample; read only."""
    folder = tmp_path_factory.mktemp("data") / "small"
    cut(SAMPLE, folder, 40)
    return folder


@pytest.fixture
def data(small, tmp_path) -> Path:
    """A copy of the small data, to be damaged."""
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
    """A copy of the finished run, to be damaged, and its command with --output."""
    folder, command = finished
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    return copy, [*command, "--output", str(copy)]


@pytest.fixture
def stopped(run, monkeypatch) -> Callable[[list[str]], None]:
    """`stopped(command)` runs a command until an epoch is finished, as an interrupt would."""
    finish = Trainer.finish_epoch

    def stop(*args: object) -> None:
        finish(*args)
        raise KeyboardInterrupt

    def call(command: list[str]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "finish_epoch", stop)
            assert run(*command).returncode == 130

    return call


@pytest.fixture
def interrupted(finished, tmp_path, stopped) -> tuple[Path, list[str]]:
    """The same run stopped after its first epoch, and its command with --output."""
    folder = tmp_path / "interrupted"
    command = [*finished[1], "--output", str(folder)]
    stopped(command)
    return folder, command
