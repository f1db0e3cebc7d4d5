"""Tab in the shell: modes, a mode's flags, and their choices."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cli

ROOT = Path(cli.__file__).parents[1]


@pytest.mark.parametrize(
    ("line", "expected", "absent"),
    [
        ("run.py --mode mul", {"multitask"}, "single"),
        ("run.py --mode multitask --combiner pa", {"pareto-mtl"}, "pcgrad"),
    ],
)
def test_what_may_follow(line, expected, absent, tmp_path):
    answer = tmp_path / "answer"
    environment = os.environ | {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    found = subprocess.run(
        [sys.executable, "run.py"], cwd=ROOT, env=environment, capture_output=True, timeout=600
    )
    assert found.returncode == 0, found.stderr
    words = {word.strip() for word in answer.read_text().split("\n")}
    assert expected <= words
    assert absent not in words
