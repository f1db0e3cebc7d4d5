"""Train the encoder further on sentences or pairs: run.py --mode pretrain --objective simcse"""

from __future__ import annotations

import argparse

from cli.flags import (
    RATE,
    add_training_flags,
    check_training_flags,
    default,
    training_config,
)
from cli.multitask import add_task_list, distinct_tasks
from cli.train import train
from cli.values import path
from pretrain import DEFAULTS
from tasks import CS224N

# A plain copy of the objectives' names, held equal to them by a test.
OBJECTIVES = {
    "simcse": "each sentence finds its other view, which dropout makes, in the batch",
    "nli": "each premise finds what follows from it; what contradicts it is a hard negative",
    "pairs": "each text finds the one that means the same (Quora duplicates, STS from 4 on)",
    "ranking": "as pairs, with sentences from elsewhere as further negatives",
    "triplet": "a text is nearer to the one that means the same than to one from elsewhere",
}
PAIRED = ("qqp", "sts")  # tasks whose labels say which texts belong together


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--objective",
        choices=tuple(OBJECTIVES),
        required=True,
        help="; ".join(f"{name}: {text}" for name, text in OBJECTIVES.items()),
    )
    add_task_list(parser, CS224N, "whose training text is used")
    parser.set_defaults(tasks=None)  # to tell what was asked for
    group = parser.add_argument_group("objective")
    group.add_argument(
        "--nli",
        type=path,
        metavar="FILE",
        help="of --objective nli: a CSV or TSV file with columns sent0, sent1, hard_neg, or "
        "sentence1, sentence2, gold_label (entailment, neutral, contradiction)",
    )
    group.add_argument(
        "--contrast-temperature",
        type=RATE,
        metavar="T",
        help="what cosines are divided by" + default("contrast_temperature"),
    )
    group.add_argument(
        "--margin",
        type=RATE,
        metavar="X",
        help="of --objective triplet, in cosines" + default("margin"),
    )
    group.add_argument(
        "--projection",
        action="store_true",
        help="put a layer between embeddings and objective, in training only (SimCSE's MLP)",
    )
    add_training_flags(parser, DEFAULTS, heads=False)


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    name, given = args.objective, args.tasks is not None
    tasks = distinct_tasks(args, parser) if given else CS224N
    if name in ("pairs", "ranking", "triplet"):
        tasks = tasks if given else PAIRED
        for task in tasks:
            if task not in PAIRED:
                parser.error(
                    f"--objective {name}: expected tasks of pairs ({', '.join(PAIRED)}), "
                    f"found {task}"
                )
    if (args.nli is not None) != (name == "nli"):
        found = "none" if args.nli is None else f"--objective {name}"
        parser.error(f"--nli: expected it with --objective nli, found {found}")
    if name == "nli" and given:
        parser.error("--tasks: expected none with --objective nli, whose text is the file's")
    if args.margin is not None and name != "triplet":
        parser.error(f"--margin: expected --objective triplet, found {name}")
    if args.contrast_temperature is not None and name == "triplet":
        parser.error("--contrast-temperature: expected another --objective than triplet")
    if args.head_lr is not None and not args.projection:
        parser.error("--head-lr: expected --projection, the only layer beside the encoder")
    if args.batch_size == 1 and name != "triplet":
        parser.error("--batch-size: expected 2 or more, for the others of a batch are negatives")
    check_training_flags(args, parser, tasks)
    if args.freeze_encoder or args.probe_epochs:
        parser.error(
            "--mode pretrain: expected neither --freeze-encoder nor --probe-epochs, "
            "for the encoder is what is trained"
        )
    config = training_config(args, DEFAULTS, mode="pretrain", tasks=tasks)

    from pretrain.run import build_and_check

    return train(config, args, build_and_check)
