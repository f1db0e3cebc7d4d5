"""python -m benchmarks NAME: compare this toolkit with other libraries and print ratios."""

from __future__ import annotations

import argparse
import pkgutil
import warnings
from pathlib import Path
from typing import Any

from common.entry_point import start
from common.environment import environment
from common.files import write_json
from minbert.config import PRECISIONS
from reports.tables import text_table

BENCHMARKS = {  # name: module, what is measured
    "encode": ("encode", "embedding real sentences"),
    "train-step": ("train_step", "a training step on STS, 32 pairs"),
    "surgery": ("surgery", "a three-task step with PCGrad"),
    "startup": ("startup", "from process start to the first result"),
}
EXTRAS = {
    "share_of_limit": "of GEMM limit",
    "cosine_min": "cosine min",
    "cosine_mean": "cosine mean",
    "gradient_difference": "gradient off by",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:<12} {text}" for name, (_, text) in BENCHMARKS.items()),
    )
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--repetitions", type=int, default=7, help="rounds (default: 7)")
    parser.add_argument("--data", default="sample", help="folder with the CS224N files")
    parser.add_argument(
        "--texts",
        type=int,
        default=2000,
        help="maximum number of texts per data set (default: 2000)",
    )
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=["fp32", "bf16"])
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    args = parser.parse_args()
    quiet_peers()
    module, text = BENCHMARKS[args.name]
    result = pkgutil.resolve_name(f"benchmarks.{module}:measure")(args)
    print(f"{text}, {result['unit']}, medians of {result['repetitions']}")
    for group, sides in result["groups"].items():
        print(f"\n{group}\n{table(sides)}")
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        figures = {"environment": environment(args.device), "benchmark": args.name} | result
        write_json(args.output, figures)


def quiet_peers() -> None:
    """Silence progress bars and the exporter's warnings, which would hide the table."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    warnings.simplefilter("ignore")


def table(sides: dict[str, dict[str, Any]]) -> str:
    """Format one row per side: spread, ratio to the reference peer, and further figures."""
    extras = [key for key in EXTRAS if any(side.get(key) is not None for side in sides.values())]
    rows = [
        [name]
        + [f"{side[key]:.2f}" for key in ("min", "median", "max", "ratio")]
        + ["" if side.get(key) is None else f"{side[key]:.6g}" for key in extras]
        for name, side in sides.items()
    ]
    return text_table(["", "min", "median", "max", "ratio", *(EXTRAS[key] for key in extras)], rows)


if __name__ == "__main__":
    start(main)
