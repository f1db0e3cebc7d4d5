"""Flags of contrastive terms beside cross-entropy (SCL-MOO), and what they mean together."""

from __future__ import annotations

import argparse
from typing import Any

from cli import lacon
from cli.task_names import has_classes
from cli.values import RATE, default, number
from multitask.choices import HEADS_ALONE, IN_BATCH, INPUTS, OBJECTIVE_SETTINGS, OWN_HEADS
from multitask.rules import TERM_WEIGHTS

# Plain copies of names, held equal to them by a test.
OBJECTIVES = {
    "ce": "cross-entropy alone",
    "scl": "and the supervised contrastive loss (Gunel et al.)",
    "ls": "and pull and push, weighted by --scl-preference (SCL-MOO)",
    "epo": "and pull and push, balanced by EPO (SCL-MOO)",
    "cl": "and SimCSE's loss on a second view of each example (ConSERT)",
    "lacon": "label embeddings contrasted with examples, and matched (LaCon)",
    "lacon-fusion": "the same of tokens that are like the labels (LaCon)",
    "leam": "cross-entropy of what the tokens have of the labels (LEAM)",
    "lsan": "cross-entropy of an embedding for each label (LSAN)",
    "projection": "cross-entropy behind LaCon's projection head",
}
SHARE = number(float, 0, 1)


def add_objective_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("contrastive objectives of tasks with classes")
    group.add_argument(
        "--objective",
        choices=tuple(OBJECTIVES),
        help="; ".join(f"{name}: {text}" for name, text in OBJECTIVES.items()) + " (default: ce)",
    )
    group.add_argument(
        "--scl-weight",
        type=SHARE,
        metavar="X",
        help="share of the contrastive terms, the rest being cross-entropy's"
        + default("scl_weight"),
    )
    group.add_argument(
        "--scl-temperature",
        type=RATE,
        metavar="X",
        help="what cosines are divided by" + default("scl_temperature"),
    )
    group.add_argument(
        "--scl-preference",
        type=number(float, 0, 1),
        metavar="R",
        help="of pull, from 0 to 1; push has the rest (default: 0.1)",
    )
    group.add_argument(
        "--scl-inputs",
        choices=INPUTS,
        help="what EPO balances: pull and push, or both with cross-entropy inside"
        + default("scl_inputs"),
    )
    group.add_argument(
        "--per-class", action="store_true", help="batches of as many examples of each class"
    )
    lacon.add_label_flags(parser)


def objective_settings(
    args: argparse.Namespace, parser: argparse.ArgumentParser, tasks: tuple[str, ...]
) -> dict[str, Any]:
    """The settings of the configuration that these flags describe; contradictions are refused."""
    name = None if args.objective == "ce" else args.objective
    for flag, owners in OBJECTIVE_SETTINGS.items():
        if getattr(args, flag) is not None and name not in owners:
            shown = flag.replace("_", "-")
            parser.error(
                f"--{shown}: expected --objective {' or '.join(owners)}, "
                f"found {args.objective or 'ce'}"
            )
    if (name or args.per_class) and not classified(args, tasks):
        flag = f"--objective {name}" if name else "--per-class"
        parser.error(f"{flag}: expected a task with classes, found {', '.join(tasks)} alone")
    if name:
        check_objective(args, parser, name)
    found: dict[str, Any] = {"objective": name, "per_class": args.per_class}
    found |= lacon.label_settings(args, parser, tasks)
    if args.scl_preference is not None:
        if name == "epo" and not 0 < args.scl_preference < 1:
            parser.error(
                "--scl-preference: expected a number between 0 and 1 for EPO, "
                f"found {args.scl_preference:g}"
            )
        found["scl_preference"] = (args.scl_preference, 1 - args.scl_preference)
    return found


def check_objective(args: argparse.Namespace, parser: argparse.ArgumentParser, name: str) -> None:
    """Refuse what would take the terms' effect or their batches away."""
    if name not in HEADS_ALONE:
        for flag in ("freeze_encoder", "probe_epochs"):
            if getattr(args, flag, None):
                shown = flag.replace("_", "-")
                parser.error(
                    f"--objective {name} and --{shown}: expected one of them, for it teaches more "
                    "than heads"
                )
    if name in OWN_HEADS:
        for flag in ("sst_head", "qqp_head"):
            if getattr(args, flag, None) is not None:
                shown = flag.replace("_", "-")
                parser.error(
                    f"--{shown}: expected another --objective, for {name} has its own head"
                )
    if args.scl_weight == 1:
        parser.error("--scl-weight: expected a number below 1, or nothing teaches the heads")
    for flag in TERM_WEIGHTS:
        given = getattr(args, flag, None) or ()
        if any(task is None or has_classes(args, task) for task, _ in given):
            shown = flag.replace("_", "-")
            why = "compares the examples of a batch" if name in IN_BATCH else "has its own head"
            parser.error(
                f"--objective {name} and --{shown}: expected one of them, for {name} {why}; "
                "TASK=WEIGHT of a task without classes may stay"
            )
    if getattr(args, "qqp_loss", None) not in (None, "cross-entropy"):
        parser.error(f"--objective {name} and --qqp-loss {args.qqp_loss}: expected one of them")


def classified(args: argparse.Namespace, tasks: tuple[str, ...]) -> list[str]:
    """Those that have classes."""
    return [task for task in tasks if has_classes(args, task)]
