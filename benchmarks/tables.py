"""One run on four columns of labels beside four runs on one column each, from start to end."""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.startup import seconds_of
from benchmarks.timing import in_rounds, seconds_table

ROOT = Path(__file__).parents[1]
TICKETS = str(ROOT / "tasks" / "sample" / "own" / "tickets.csv")
LABELS = ("topic", "urgency:type=ordinal,labels=low|normal|high", "tags", "satisfaction")
SEPARATE, SHARED = "four runs of a column each", "one run of four columns"


def run_of(labels: tuple[str, ...], folder: Path) -> float:
    """Return the seconds of a training run on columns of the bundled tickets."""
    mode = "multitask" if len(labels) > 1 else "single"
    flags = ["--data-file", TICKETS, "--text", "text", "--labels", *labels, "--group", "customer"]
    flags += ["--encoder", "minilm", "--tracker", "none"]
    command = [sys.executable, "run.py", "--mode", mode, *flags, "--output", str(folder)]
    return seconds_of(command)


def separate(folder: Path) -> float:
    """Return the seconds of one run for each column."""
    return sum(run_of((one,), folder) for one in LABELS)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Return seconds and speed-ups over separate runs."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        sides = {SEPARATE: partial(separate, folder), SHARED: partial(run_of, LABELS, folder)}
        found = seconds_table(in_rounds(sides, args.repetitions), SEPARATE)
    group = "400 tickets, 15 % of the cells blank, three epochs, minilm, fp32"
    return {"unit": "seconds", "repetitions": args.repetitions, "groups": {group: found}}
