"""Memory and start-up time of a run on very many pairs.

    python -m benchmarks.scale --pairs 1000000 --output results/scale/one-million-pairs.json

Write questions of random words, as long as Quora's and with a Zipf distribution of words. Train on
them in a separate process and sample its memory twenty times per second. Anonymous memory belongs
to the process; pages of mapped files, which the system can reclaim, are counted separately. This
benchmark requires Linux' /proc.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.output import write_figures
from common.entry_point import start
from common.json_files import read_json

ROOT = Path(__file__).parents[1]
WORDS = 30_000
LENGTH = 11.0  # mean number of words per question
FIELDS = {"RssAnon": "anonymous", "RssFile": "of files"}


def write_pairs(file: Path, count: int, seed: int, labelled: bool = True) -> None:
    """Write `count` pairs in the format of the Quora files."""
    draw = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(draw.choice(letters, draw.integers(2, 9))) for _ in range(WORDS)])
    probabilities = 1 / np.arange(1, WORDS + 1)
    probabilities /= probabilities.sum()
    with file.open("w") as target:
        header = ["id", "sentence1", "sentence2"] + ["is_duplicate"] * labelled
        target.write("\t".join(header) + "\n")
        for begin in range(0, count, 10_000):
            many = min(10_000, count - begin)
            lengths = 1 + draw.poisson(LENGTH - 1, 2 * many)
            chosen = words[draw.choice(WORDS, lengths.sum(), p=probabilities)]
            texts = [" ".join(one) + "?" for one in np.split(chosen, np.cumsum(lengths)[:-1])]
            labels = draw.integers(0, 2, many)
            for i in range(many):
                row = [f"{begin + i:x}", texts[2 * i], texts[2 * i + 1]]
                row += [f"{labels[i]}.0"] * labelled
                target.write("\t".join(row) + "\n")


def run_monitored(command: Sequence[str]) -> dict[str, Any]:
    """Run a process; return its seconds, peak memory and output. Exit if it fails."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        with subprocess.Popen(command, cwd=ROOT, stdout=stdout, stderr=stderr) as process:
            peaks = peaks_of(process)
        seconds = time.perf_counter() - begin
        for file in (stdout, stderr):
            file.seek(0)
        found = {"stdout": stdout.read(), "stderr": stderr.read()}
    if process.returncode:
        raise SystemExit(f"{command}: status {process.returncode}: {found['stderr'][-1000:]}")
    sizes = {name: round(size) for name, size in peaks.items()}
    return {"seconds": round(seconds, 1), "peak_mib": sizes, **found}


def peaks_of(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """Return the peak memory of a process until it ends, in MiB."""
    peaks = dict.fromkeys(FIELDS.values(), 0.0)
    while process.poll() is None:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        except OSError:  # the process has ended
            break
        for line in lines:
            name, _, rest = line.partition(":")
            if name in FIELDS:
                size = int(rest.split()[0]) / 1024
                peaks[FIELDS[name]] = max(peaks[FIELDS[name]], size)
        time.sleep(0.05)
    return peaks


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--predictions", type=int, default=10_000)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_pairs(folder / "quora-train.csv", args.pairs, 0)
        write_pairs(folder / "quora-dev.csv", args.predictions, 1)
        write_pairs(folder / "quora-test-student.csv", 10, 2, labelled=False)
        command = [
            *(sys.executable, "run.py", "--mode", "single", "--task", "qqp", "--epochs", "1"),
            *("--steps-per-epoch", str(args.steps), "--encoder", args.encoder),
            *("--data", place, "--output", str(folder / "run")),
        ]
        ran = run_monitored(command)
        lines = ran["stdout"].splitlines()
        started = next(line for line in lines if line.startswith("data read"))
        metrics = read_json(folder / "run" / "metrics.json")
        result = {
            "pairs": args.pairs,
            "steps": metrics["steps"],
            "predictions": args.predictions,
            "encoder": args.encoder,
            "start_up": started,
            "training_seconds": metrics["training_seconds"],
            "seconds": ran["seconds"],
            "peak_mib": ran["peak_mib"],
        }
    print("\n".join(f"{name}: {value}" for name, value in result.items()))
    write_figures(args.output, result)


if __name__ == "__main__":
    start("python -m benchmarks.scale", main)
