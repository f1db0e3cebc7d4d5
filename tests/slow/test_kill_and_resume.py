"""A run that is killed at random moments ends, resumed, with the bytes of a whole run."""

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = (
    "run.py --mode multitask --tasks sst sts --encoder tiny --pcgrad --smart-weight 1"
    " --limit 32 --epochs 2 --checkpoint-every 1"
)


def start(folder: Path, *flags: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, *COMMAND.split(), "--output", str(folder), *flags]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finish(folder: Path, *flags: str) -> dict[str, bytes]:
    """Let a run end; return its predictions, best weights and telemetry."""
    assert start(folder, *flags).wait(timeout=600) == 0
    assert not [*folder.glob("last"), *folder.rglob(".*.new"), *folder.rglob(".*.old")]
    files = [*folder.glob("predictions/*"), *folder.glob("best/*.safetensors")]
    return {one.name: one.read_bytes() for one in [*files, folder / "telemetry.jsonl"]}


def writing(folder: Path) -> bool:
    """Return whether a checkpoint is being written."""
    return any((folder / name).exists() for name in (".best.new", ".last.new"))


@pytest.mark.slow
def test_a_killed_run_ends_with_the_bytes_of_the_whole_one(tmp_path):
    whole, draw, kills = finish(tmp_path / "whole"), random.Random(0), 0
    folder = tmp_path / "killed"
    while kills < 2:  # the second one while a checkpoint is written
        process = start(folder)
        while process.poll() is None and not (folder / "config.json").exists():
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 1))
        while kills % 2 and process.poll() is None and not writing(folder):
            time.sleep(0.0002)
        process.kill()
        if process.wait() == -signal.SIGKILL:  # else it had ended before
            kills += 1
            assert finish(folder, "--resume") == whole
        shutil.rmtree(folder)
