"""An untrained BiLSTM over words: run.py --mode bilstm --tasks sst2 --output DIR

Its words are those of the tasks' training text. The folder is an encoder like any other, to be
trained by the other modes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.flags import POOLINGS
from cli.multitask import add_task_list, distinct_tasks
from cli.protocol import add_protocol_flags, check_protocol
from cli.run_config import training_config
from cli.values import COUNT, DEFAULTS, default, limit, number, path
from multitask.values import MANY
from tasks import CS224N

# Those of SuperConText for small data sets (section IV.B), and the width of GloVe's vectors.
UNITS, LAYERS, DROPOUT, WIDTH, TOKENS = 128, 1, 0.2, 300, 512


def add_flags(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    add_task_list(parser, CS224N, "whose training text has the words")
    data.add_argument(
        "--data", type=path, metavar="DIR", help="folder with the tasks' files" + default("data")
    )
    data.add_argument(
        "--limit",
        type=limit,
        nargs="+",
        metavar="N",
        help="the words of N examples of a task, or of a share of them; TASK=N for one task",
    )
    add_protocol_flags(data)
    shape = parser.add_argument_group("encoder")
    shape.add_argument(
        "--vectors",
        type=path,
        metavar="FILE",
        help="word vectors to begin with, as GloVe publishes them: a word and its numbers, a line "
        "each; words without one begin at random with the same deviation",
    )
    numbers = (
        ("units", COUNT, UNITS, "in each direction"),
        ("layers", COUNT, LAYERS, "on each other"),
        ("max-tokens", number(int, 3, MANY), TOKENS, "of a text; the rest is cut off"),
    )
    for name, kind, value, text in numbers:
        shape.add_argument(
            f"--{name}",
            type=kind,
            default=value,
            metavar="N",
            help=f"{text} (default: {value})",
        )
    shape.add_argument(
        "--embedding-size",
        type=COUNT,
        metavar="N",
        help=f"of a word, where no --vectors are given (default: {WIDTH})",
    )
    shape.add_argument(
        "--dropout",
        type=number(float, 0, 0.99),
        default=DROPOUT,
        metavar="X",
        help=f"of words and layers (default: {DROPOUT})",
    )
    shape.add_argument(
        "--pooling", choices=POOLINGS, default=POOLINGS[0], help=f"(default: {POOLINGS[0]})"
    )
    shape.add_argument(
        "--seed",
        type=number(int, 0, 2**32 - 1),
        metavar="N",
        help="of the weights" + default("seed"),
    )
    parser.add_argument(
        "--output", type=path, metavar="DIR", required=True, help="folder of the encoder"
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    tasks = distinct_tasks(args, parser)
    check_protocol(args, parser, tasks)
    if args.vectors and args.embedding_size:
        parser.error("--vectors and --embedding-size: expected one of them")
    folder = Path(args.output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        parser.error(f"--output: expected a new or empty folder, found {folder}")
    config = training_config(args, mode="bilstm", tasks=tasks)

    from minbert.words import build_bilstm
    from multitask.assembly import training_texts

    told = build_bilstm(
        folder,
        training_texts(config),
        Path(args.vectors) if args.vectors else None,
        args.units,
        args.layers,
        args.dropout,
        args.embedding_size or WIDTH,
        args.max_tokens,
        args.pooling,
        DEFAULTS.seed if args.seed is None else args.seed,
    )
    print(told)
    return 0
