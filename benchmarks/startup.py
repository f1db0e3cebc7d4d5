"""Process start to the first finished training step: ours beside sentence-transformers'.

Both scripts train all-MiniLM-L6-v2 on the bundled STS sample with AdamW and batches of 16 pairs,
from the same local folder, and end right after their first step. They run in turns, each in a
process of its own, and the clock is the parent's.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

OURS, PEER = "run.py --mode single --task sts", "sentence-transformers trainer"
SCRIPTS = {OURS: "startup_ours", PEER: "startup_sentence_transformers"}


def seconds_to_first_step(module: str) -> float:
    """Seconds from starting the process until it says that its first step is finished."""
    quiet = os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.{module}", folder],
            cwd=Path(__file__).parents[1],
            env=quiet,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        output, errors = child.communicate()
        seconds = time.perf_counter() - begin
    if "first step finished" not in output:
        raise RuntimeError(f"benchmarks.{module} did not get to its first step:\n{errors}")
    return seconds


def measure(repetitions: int) -> dict[str, Any]:
    """Medians and the ratio to sentence-transformers, after one warming round that is not kept."""
    times: dict[str, list[float]] = {name: [] for name in SCRIPTS}
    for repetition in range(repetitions + 1):
        for name, module in SCRIPTS.items():
            seconds = seconds_to_first_step(module)
            if repetition:
                times[name].append(seconds)
    peer = statistics.median(times[PEER])
    sides = {
        name: {
            "min": min(values),
            "median": statistics.median(values),
            "max": max(values),
            "ratio": statistics.median(values) / peer,
        }
        for name, values in times.items()
    }
    return {"unit": "seconds", "repetitions": repetitions, "sides": sides}
