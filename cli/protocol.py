"""Flags of the protocols: which labelled examples are used, and how pairs reach the encoder."""

from __future__ import annotations

import argparse

from cli.task_names import has_classes, own_settings
from cli.values import COUNT, default, number
from multitask.choices import LEAKS, PAIR_OPTIONS, SHOTS
from multitask.values import MANY
from tasks import MANY_CLASSES, PAIRS

# Plain copies of names, held equal to them by a test.
PROTOCOLS = {
    "files": "the files as they are",
    "few-shot": "--shots of the training examples, half of dev for dev, its rest for test",
    "held-out": "a tenth of train for dev, dev for test",
    "capped": "at most --shots of each class of train, a twentieth of them for dev, dev for test",
    "few-a-class": "--shots of each class, as many others for dev, dev for test",
    "imbalanced": "--shots of the rarest class, --imbalance times as many of the most frequent",
}


def add_protocol_flags(data: argparse._ArgumentGroup) -> None:
    """Which labelled examples are train, dev and test."""
    data.add_argument(
        "--protocol",
        choices=tuple(PROTOCOLS),
        help="which labelled examples are train, dev and test: "
        + "; ".join(f"{name}: {text}" for name, text in PROTOCOLS.items())
        + default("protocol"),
    )
    data.add_argument(
        "--drop-leaks",
        nargs="?",
        choices=LEAKS,
        const=LEAKS[0],
        help="leave out training examples that are in dev or test of their task and, of `all` "
        f"(default: {LEAKS[0]}), of sst, qqp or sts; of the task alone with `own`",
    )
    data.add_argument(
        "--shots",
        type=COUNT,
        metavar="N",
        help="labelled examples of a task, classes alike, or of a class: see --protocol",
    )
    data.add_argument(
        "--imbalance",
        type=number(float, 1, MANY),
        metavar="X",
        help="of --protocol imbalanced: the most frequent class over the rarest",
    )
    data.add_argument(
        "--classes",
        type=number(int, 2, 1000),
        metavar="N",
        help=f"the first N classes alone, of {', '.join(MANY_CLASSES)}",
    )


def add_pair_flag(encoder: argparse._ArgumentGroup) -> None:
    """How pairs of texts reach the encoder."""
    encoder.add_argument(
        "--pair",
        choices=PAIR_OPTIONS,
        help=f"texts of {', '.join(PAIRS)}: each through a tower of its own, or one sequence "
        f"for both (default: {PAIR_OPTIONS[0]})",
    )


def check_protocol(
    args: argparse.Namespace, parser: argparse.ArgumentParser, tasks: tuple[str, ...]
) -> None:
    """Refuse shots without a protocol of them and the other way round, tasks without classes."""
    protocol, shots = args.protocol or "files", args.shots
    if getattr(args, "pair", None) and not set(tasks) & set(PAIRS):
        parser.error(f"--pair: expected one of {', '.join(PAIRS)}, found {', '.join(tasks)}")
    if getattr(args, "pair", None) == "joint":
        for flag in ("qqp_head", "qqp_loss"):
            if getattr(args, flag, None) is not None:
                shown = flag.replace("_", "-")
                parser.error(f"--{shown} and --pair joint: expected one of them")
    if protocol in SHOTS and shots is None:
        parser.error(f"--protocol {protocol}: expected --shots N, found none")
    if shots is not None and protocol not in SHOTS:
        parser.error(f"--shots: expected --protocol {' or '.join(SHOTS)}, found {protocol}")
    for task in tasks:
        if shots is not None and not has_classes(args, task):
            parser.error(f"--protocol {protocol}: expected tasks with classes, found {task}")
    if shots is not None and args.limit is not None:
        parser.error("--limit and --shots: expected one of them")
    if (args.imbalance is not None) != (protocol == "imbalanced"):
        found = "none" if args.imbalance is None else f"--protocol {protocol}"
        parser.error(f"--imbalance: expected it with --protocol imbalanced, found {found}")
    for task in tasks:
        most = MANY_CLASSES.get(task, 0)
        if args.classes is not None and args.classes > most:
            found = f"{task}, which has {most}" if most else task
            parser.error(
                f"--classes {args.classes}: expected a task of as many, of "
                f"{', '.join(MANY_CLASSES)}, found {found}"
            )


def check_one_vector(
    args: argparse.Namespace, parser: argparse.ArgumentParser, tasks: tuple[str, ...]
) -> None:
    """Refuse pairs of texts with an embedding each."""
    for task in tasks:
        own = own_settings(args, task)
        apart = task in PAIRS and args.pair != "joint"
        own_apart = len(own.get("texts", ())) == 2 and not own["joint"]
        if apart or own_apart:
            joint = "pair=joint among its settings" if own_apart else "--pair joint"
            parser.error(
                f"--objective {args.objective}: expected tasks of single texts, or {joint}, "
                f"found {task}"
            )
