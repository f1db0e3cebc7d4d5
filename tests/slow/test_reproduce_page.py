"""Commands of docs/reproduce.md run, with a random BERT of two layers in place of the hub's."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

import minbert.sources
from cli import main
from minbert.bi_encoder import BiEncoder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduce.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]
SMALL = ["--limit", "24", "--epochs", "1"]
STEPS = [*SMALL, "--steps-per-epoch", "2"]
# What makes a command of a mode, or of a table, small.
FLAGS = {
    **dict.fromkeys(("single", "pretrain"), STEPS),
    "multitask": ["--limit", "24", "--epochs", "4", "--steps-per-epoch", "2"],
    "bees": [*SMALL, "--rows", "M6"],
    "scl-moo": ["--epochs", "1", "--seeds", "1", "--rows", "full-mrpc-ce", "--limit", "24"],
    "supercontext": [*SMALL, "--seeds", "1", "--rows", "given-sst2-superloss"],
    "lacon": [*SMALL, "--seeds", "1", "--rows", "main-mrpc-lacon"],
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with `data` and our results, where the named encoders are a random BERT.

    It has two layers.
    """
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "results", tmp_path / "results")
    (tmp_path / "data").symlink_to(ROOT / "tasks" / "sample")
    BiEncoder.from_pretrained("tiny").save_pretrained(tmp_path / "bert")
    monkeypatch.setattr(minbert.sources, "download", lambda *_: tmp_path / "bert")
    return tmp_path


def without(flags, arguments):
    """Return the arguments without some flags and their values."""
    kept, skip = [], False
    for one in arguments:
        skip = one in flags or (skip and not one.startswith("--"))
        kept += [] if skip else [one]
    return kept


@pytest.mark.slow
def test_every_command_of_the_page_runs(place, capsys):
    assert len(COMMANDS) == 10
    for command in COMMANDS:
        arguments = shlex.split(command)[2:]
        mode = arguments[1]
        small = FLAGS.get(mode, [])
        if mode == "reproduce":
            small = FLAGS[arguments[3]] if "--dry-run" not in arguments else ["--rows", "M6"]
            arguments = without(("--further",), arguments)
        status = main(without(small[::2], arguments) + small)
        assert status == 0, (command, capsys.readouterr().err)
        printed = capsys.readouterr().out
        if "--dry-run" in arguments:
            assert "examples" in printed
        elif mode == "reproduce":
            results = place / arguments[arguments.index("--results") + 1]
            assert "/" in results.with_suffix(".md").read_text("utf-8")
            assert any(results.glob("M6.json" if arguments[3] == "bees" else "*-*.json"))
        else:
            assert any((place / arguments[arguments.index("--output") + 1]).iterdir())
