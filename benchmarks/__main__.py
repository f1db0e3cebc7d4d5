"""python -m benchmarks NAME: compare this toolkit with other libraries in one run."""

import argparse
import warnings
from pathlib import Path

from transformers.utils import logging

from benchmarks import encode, startup, training
from common.entry_point import start
from common.files import write_json
from minbert.config import PRECISIONS
from minbert.device import environment
from reports.tables import text_table

BENCHMARKS = {
    "encode": (encode.measure, "embedding real sentences, in sentences/s"),
    "train-step": (training.train_step, "a training step on STS, in pairs/s"),
    "surgery": (training.surgery, "a three-task step with PCGrad, in seconds"),
    "startup": (startup.measure, "from process start to the first result, in seconds"),
}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--repetitions", type=int, default=7, help="rounds (default: 7)")
    parser.add_argument("--data", default="sample", help="folder with the CS224N files")
    parser.add_argument("--texts", type=int, default=2000, help="encode: texts of a data set")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=["fp32", "bf16"])
    parser.add_argument("--device", default="cpu", help="encode, train-step: cpu or cuda")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    args = parser.parse_args()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    warnings.simplefilter("ignore")  # the exporter's would hide the table
    measure, text = BENCHMARKS[args.name]
    groups = measure(args)
    print(f"{text}, {args.repetitions} rounds")
    for group, sides in groups.items():
        keys = dict.fromkeys(key for side in sides.values() for key in side)
        rows = [
            [name, *(f"{side[key]:.6g}" if key in side else "" for key in keys)]
            for name, side in sides.items()
        ]
        print(f"\n{group}\n{text_table(['', *keys], rows)}")
    if args.output:
        settings = {key: value for key, value in vars(args).items() if key != "output"}
        content = {"environment": environment(args.device), "settings": settings, "groups": groups}
        write_json(args.output, content)


if __name__ == "__main__":
    start(main)
