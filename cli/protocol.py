"""Flags of the protocols: which labelled examples are used, and how pairs reach the encoder."""

from __future__ import annotations

import argparse

from cli.values import COUNT, default
from tasks import PAIRS

# Plain copies of names, held equal to them by a test.
PROTOCOLS = {
    "files": "the files as they are",
    "few-shot": "--shots of the training examples, half of dev for dev, its rest for test",
    "held-out": "a tenth of train for dev, dev for test",
}
PAIR_OPTIONS = ("bi", "joint")


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
        action="store_true",
        help="leave out training examples that are in dev or test of sst, qqp or sts, too",
    )
    data.add_argument(
        "--shots", type=COUNT, metavar="N", help="labelled examples of a task, classes alike"
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
    """Refuse shots without few-shot and the other way round, or of a task without classes."""
    few, shots = getattr(args, "protocol", None) == "few-shot", getattr(args, "shots", None)
    if few and shots is None:
        parser.error("--protocol few-shot: expected --shots N, found none")
    if shots is not None and not few:
        parser.error(f"--shots: expected --protocol few-shot, found {args.protocol or 'files'}")
    if few and "sts" in tasks:
        parser.error("--protocol few-shot: expected tasks with classes, found sts")
    if few and args.limit is not None:
        parser.error("--limit and --shots: expected one of them")
