"""Time from process start to a result, compared with sentence-transformers.

There are two results: the first training step (all-MiniLM-L6-v2, bundled STS sample, AdamW, batches
of 16 pairs) and one encoded sentence. Both sides read the same local folder. They run in turns,
each in its own process, timed by the parent process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.timing import in_rounds, seconds_table

RUN = "run.py --mode single --task sts"
ENCODE = "run.py --mode encode"
PEER = "sentence-transformers"
ROOT = Path(__file__).parents[1]


def commands(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Return group -> side -> command; each command writes its result under `folder`."""
    sentence = folder / "sentence.txt"
    sentence.write_text("A cat sleeps on the sofa.\n")
    target = str(folder / "sentence.npy")
    script = [sys.executable, "-m", "benchmarks.sides"]
    return {
        "first training step": {
            PEER: [*script, "first_step_of_peer", str(folder / "peer")],
            RUN: [*script, "first_step", str(folder / "ours")],
        },
        "load and encode one sentence": {
            PEER: [*script, "encode_with_peer", str(sentence), target],
            ENCODE: [
                *(sys.executable, "run.py", "--mode", "encode", "--overwrite"),
                *("--input", str(sentence), "--output", target),
            ],
        },
    }


def seconds_of(command: list[str]) -> float:
    """Return the seconds from the start of a process to its end; raise if it fails."""
    quiet = os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
    shutil.rmtree(command[-1], ignore_errors=True)  # an earlier repetition's run folder
    begin = time.perf_counter()
    ended = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{ended.stderr}")
    return seconds


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return seconds and speed-ups over sentence-transformers, by group."""
    with tempfile.TemporaryDirectory() as folder:
        groups = {
            group: seconds_table(
                in_rounds({n: partial(seconds_of, c) for n, c in sides.items()}, args.repetitions),
                PEER,
            )
            for group, sides in commands(Path(folder)).items()
        }
    return {"unit": "seconds", "repetitions": args.repetitions, "groups": groups}
