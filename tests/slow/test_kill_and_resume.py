"""Kills a training run at random moments, resumes it, and compares what it predicts.

    python tests/slow/test_kill_and_resume.py --kills 30

Half of the kills come while a checkpoint is being written, the others at any time. Every resumed
run has to end with the prediction files, metrics and telemetry of an undisturbed run, byte for
byte.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = [
    *(sys.executable, "run.py", "--mode", "multitask", "--encoder", "tiny", "--limit", "200"),
    *("--epochs", "2", "--sampling", "annealed", "--pcgrad", "--checkpoint-every", "2"),
]
TIMEOUT = 600  # seconds


def start(folder: Path, *flags: str) -> subprocess.Popen[str]:
    command = [*RUN, "--output", str(folder), *flags]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(folder: Path, *flags: str) -> str:
    """Return the standard output of a run that ends normally."""
    process = start(folder, *flags)
    stdout, stderr = process.communicate(timeout=TIMEOUT)
    if process.returncode:
        raise SystemExit(f"{folder}: status {process.returncode}: {stderr[-2000:]}")
    return stdout


def computed(folder: Path) -> dict[str, object]:
    """Return the predictions and telemetry as bytes, and the metrics without times."""
    found: dict[str, object] = {
        file.name: file.read_bytes() for file in sorted(folder.glob("predictions/*"))
    }
    metrics = json.loads((folder / "metrics.json").read_text())
    kept = ("dev", "history", "best_epoch", "steps", "combiner_steps", "conflicts")
    return found | {
        "telemetry": (folder / "telemetry.jsonl").read_bytes(),
        "metrics": {key: metrics[key] for key in kept},
    }


def kill(process: subprocess.Popen[str], folder: Path, delay: float, in_a_write: bool) -> bool:
    """SIGKILL after `delay` seconds, or at the next write of a checkpoint; False if it ended."""
    time.sleep(delay)
    while in_a_write and process.poll() is None and not writing(folder):
        time.sleep(0.0002)
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


def writing(folder: Path) -> bool:
    """Return whether a checkpoint is being written."""
    numbered = [*folder.glob("best-*"), *folder.glob("last-*")]
    return any(not (one / "state.json").exists() for one in numbered)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    draw = random.Random(args.seed)
    kills = same = written = resumed = 0
    with tempfile.TemporaryDirectory() as place:
        begin = time.monotonic()
        finish(Path(place) / "whole")
        seconds = time.monotonic() - begin
        expected = computed(Path(place) / "whole")
        while kills < args.kills:
            folder, delay = Path(place) / "killed", draw.uniform(0, seconds)
            if not kill(start(folder), folder, delay, in_a_write=kills % 2 == 0):
                shutil.rmtree(folder)  # it was done before
                continue
            kills, in_a_write = kills + 1, writing(folder)
            flags = ["--resume"] if (folder / "config.json").exists() else []
            stdout = finish(folder, *flags)
            equal = computed(folder) == expected
            same, written = same + equal, written + in_a_write
            resumed += "resumed after step" in stdout
            print(
                f"kill {kills} after {delay:.1f} s{', in a write' * in_a_write}: "
                f"{'the same bytes' if equal else 'OTHER BYTES'}",
                flush=True,
            )
            shutil.rmtree(folder)
    print(
        f"{same} of {args.kills} killed runs end with the bytes of the undisturbed one; {written} "
        f"were killed while a checkpoint was written, {resumed} went on in the middle"
    )
    return 0 if same == args.kills else 1


@pytest.mark.slow
def test_killed_runs_end_with_the_bytes_of_the_undisturbed_one(capsys):
    assert main(["--kills", "2"]) == 0  # one while a checkpoint is written, one after a delay
    assert "2 of 2 killed runs end with the bytes" in capsys.readouterr().out


if __name__ == "__main__":
    sys.exit(main())
