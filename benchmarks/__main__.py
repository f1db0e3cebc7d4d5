"""python -m benchmarks NAME: measure us beside a peer and print ratios."""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

from multitask.environment import environment
from reports.tables import text_table

BENCHMARKS = {"startup": "process start to the first finished training step"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--repetitions", type=int, default=7, help="of each side (default: 7)")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    args = parser.parse_args()
    result = importlib.import_module(f"benchmarks.{args.name}").measure(args.repetitions)
    rows = [
        [name, *(f"{side[key]:.2f}" for key in ("min", "median", "max", "ratio"))]
        for name, side in result["sides"].items()
    ]
    print(f"{BENCHMARKS[args.name]}, {result['unit']}")
    print(text_table(["", "min", "median", "max", "ratio"], rows))
    if args.output:
        content = {"benchmark": args.name, "environment": environment()} | result
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
