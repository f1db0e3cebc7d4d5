"""python -m benchmarks NAME: compare this toolkit with other libraries and print ratios."""

from __future__ import annotations

import argparse
import pkgutil
import warnings
from pathlib import Path
from typing import Any

from benchmarks.output import write_figures
from common.entry_point import start
from minbert.config import ENCODING_PRECISIONS
from reports.tables import text_table

BENCHMARKS = {  # name: module and function, what is measured
    "encode": ("encode:measure", "embedding real sentences"),
    "train-step": ("train_steps:sts", "a training step on STS, 32 pairs"),
    "simcse-step": ("train_steps:simcse", "a SimCSE step, 64 sentences in two dropout views"),
    "smart-step": (
        "train_steps:smart",
        "a training step with adversarial regularisation, 32 examples",
    ),
    "contrastive-step": (
        "train_steps:contrastive",
        "a training step with contrastive terms or label embeddings, 32 examples",
    ),
    "class-losses": (
        "class_losses:measure",
        "losses over the classes of a batch, forward and backward",
    ),
    "smaller": (
        "smaller:measure",
        "quality and speed of precisions, static tables and quantised peers",
    ),
    "lstm": ("lstm:measure", "a BiLSTM in training, forward and backward"),
    "surgery": ("surgery:measure", "a three-task step with PCGrad"),
    "all-pairs": ("encode:all_pairs", "all pairs of 1,000 and 10,000 sentences"),
    "serving": ("serving:measure", "requests of several clients to the server"),
    "tables": ("tables:measure", "training on four columns of labels of a table"),
    "startup": ("startup:measure", "from process start to the first result"),
}
EXTRAS = {
    "share_of_limit": "of GEMM limit",
    "cosine_min": "cosine min",
    "cosine_mean": "cosine mean",
    "spearman": "STS dev Spearman",
    "nearest": "same 10 nearest",
    "gradient_difference": "gradient off by",
    "times_plain": "times plain",
    "peak_mb": "peak MB",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
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
    parser.add_argument(
        "--precisions", nargs="+", choices=ENCODING_PRECISIONS, default=["fp32", "bf16"]
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    sizes = parser.add_argument_group("only with smaller")
    sizes.add_argument("--run", help="run on STS with --widths and --exits, to measure its sizes")
    sizes.add_argument("--figure", type=Path, help="draw quality against speed, such as FILE.svg")
    args = parser.parse_args()
    if (args.run or args.figure) and args.name != "smaller":
        parser.error(f"--run and --figure: expected smaller, found {args.name}")
    if "int8" in args.precisions and args.name not in ("encode", "smaller"):
        parser.error(f"--precisions int8: expected encode or smaller, found {args.name}")
    quiet_peers()
    place, text = BENCHMARKS[args.name]
    result = pkgutil.resolve_name(f"benchmarks.{place}")(args)
    print(f"{text}, {result['unit']}, medians of {result['repetitions']}")
    if "linear" in result:
        print(f"our linear layers on a CPU: {result['linear']}")
    for group, sides in result["groups"].items():
        print(f"\n{group}\n{table(sides)}")
    if "recommendation" in result:
        print(f"\n{result['recommendation']}")
    write_figures(args.output, {"benchmark": args.name} | result, args.device)


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
    start("python -m benchmarks", main)
