"""A small trained run with heads of every kind."""

from pathlib import Path

import pytest

import cli
from serving import MultiTaskModel, load
from tasks import data_folder

SAMPLE = data_folder("sample")


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """sst, qqp, sts and an own task of joint pairs on the tiny encoder; read only."""
    folder = tmp_path_factory.mktemp("serving")
    rows = "".join(f"text {i},other {i % 7},{'same' if i % 2 else 'not'}\n" for i in range(40))
    (folder / "own.csv").write_text("a,b,y\n" + rows)
    table = ("--data-file", str(folder / "own.csv"), "--text", "a", "b")
    command = [
        *(
            "--mode",
            "multitask",
            "--tasks",
            "sst",
            "qqp",
            "sts",
            *table,
            "--labels",
            "own=y:pair=joint",
        ),
        *("--encoder", "tiny", "--epochs", "1"),
        *("--limit", "40", "--batch-size", "8", "--output", str(folder / "run")),
    ]
    assert cli.main(command) == 0
    return folder / "run"


@pytest.fixture(scope="session")
def model(trained) -> MultiTaskModel:
    return load(trained)
