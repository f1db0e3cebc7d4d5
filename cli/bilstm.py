"""Write an untrained BiLSTM over words: run.py --mode bilstm --tasks sst2 --output DIR

Its vocabulary is that of the tasks' training text. The folder is an encoder that the other modes
can train.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from cli.multitask import add_task_list, distinct_tasks
from cli.settings_flags import Flags, path
from cli.training import add_drop_leaks, add_use, config_of
from common.argument_types import typed
from common.settings import Count
from minbert.config import BiLSTMConfig, Tokens
from multitask.settings.methods import methods
from tasks import CS224N, TASKS

Dropped = Annotated[float, Meta(ge=0, le=0.99)]


def add_flags(parser: Any) -> None:
    parser.flags = flags = Flags(parser)
    add_task_list(flags, CS224N, "whose training text gives the vocabulary")
    flags.add_config(("data", "limit", "seed", "pooling"))
    add_use(flags)
    add_drop_leaks(flags)
    flags.add_methods({"protocol": methods("protocol", parser.outside)})
    flags.add_task_options(
        [name for name, one in TASKS.items() if list(one.by_key()) == ["classes"]]
    )
    flags.add(
        "vectors",
        "encoder",
        "initial word vectors in the format of GloVe, a word and its numbers per line; "
        "other words are initialised at random with the same standard deviation",
        metavar="FILE",
        type=path,
    )
    numbers = (
        ("units", Count, BiLSTMConfig.units, "units in each direction"),
        ("layers", Count, BiLSTMConfig.num_layers, "number of layers"),
        (
            "max_tokens",
            Tokens,
            BiLSTMConfig.max_tokens,
            "maximum tokens per text; longer texts are cut",
        ),
        (
            "dropout",
            Dropped,
            BiLSTMConfig.dropout,
            "dropout probability of words and layers, up to 0.99",
        ),
    )
    for key, hint, value, text in numbers:
        help = f"{text} (default: {value})"
        flags.add(key, "encoder", help, type=typed(hint), default=value, metavar="N")
    flags.add(
        "embedding_size",
        "encoder",
        f"width of word vectors without --vectors (default: {BiLSTMConfig.embedding_size})",
        type=typed(Count),
        metavar="N",
    )
    flags.add("output", "output", "folder of the encoder", type=path, metavar="DIR", required=True)


def main(args: argparse.Namespace, parser: Any) -> int:
    tasks = distinct_tasks(args, parser, CS224N)
    if args.vectors and args.embedding_size:
        parser.error("--vectors and --embedding-size: expected at most one of them")
    folder = Path(args.output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        parser.error(f"--output: expected a new or empty folder, found {folder}")
    config = config_of(args, parser, tasks, mode="bilstm")

    from minbert.words import build_bilstm
    from multitask.config_tasks import training_texts

    line = build_bilstm(
        folder,
        training_texts(config),
        Path(args.vectors) if args.vectors else None,
        args.units,
        args.layers,
        args.dropout,
        args.embedding_size or BiLSTMConfig.embedding_size,
        args.max_tokens,
        config.pooling or "mean",
        config.seed,
    )
    print(line)
    return 0
