"""Flags of pre-training on the classes of tasks (SuperConText), and what they mean together."""

from __future__ import annotations

import argparse
from typing import Any

from cli.protocol import check_one_vector
from cli.task_names import has_classes
from cli.values import COUNT, default, number
from multitask.choices import PROJECTION_HEADS, SUPER_LOSSES
from multitask.values import MANY
from pretrain import DEFAULTS

# Plain copies of names, held equal to them by a test.
OBJECTIVES = {
    "superloss": "texts are nearer to their class than to others, on average (SuperConText)",
    "supcon": "each text finds every other of its class (Khosla et al.)",
    "class-triplet": "a text is nearer to each of its class than to any other, by a margin",
    "npair": "of two texts of each class, the first finds the second",
}
HARD = {
    "top_k": (COUNT, "N", "the N nearest"),
    "threshold": (number(float, -1, 1), "X", "those of at least this cosine, or else the nearest"),
    "top_fraction": (number(float, 0, 1, above=True), "X", "the nearest share"),
}


def add_class_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(f"objectives of classes ({', '.join(OBJECTIVES)})")
    group.add_argument(
        "--projection-head",
        choices=PROJECTION_HEADS,
        help="between embeddings and objective, in training only" + default("projection_head"),
    )
    group.add_argument(
        "--super-loss",
        choices=SUPER_LOSSES,
        help="of superloss: as the paper's algorithm has it, or its equation"
        + default("super_loss"),
    )
    for name, what in (("positives", "of its class"), ("negatives", "of other classes")):
        group.add_argument(
            f"--{name}", type=COUNT, metavar="N", help=f"of superloss: an anchor's first N {what}"
        )
    for name, (kind, metavar, text) in HARD.items():
        flag = f"--hard-{name.replace('_', '-')}"
        text = f"of superloss: of an anchor's negatives {text} alone"
        group.add_argument(flag, type=kind, metavar=metavar, help=text)
    group.add_argument(
        "--hard-after",
        type=number(int, 0, MANY),
        metavar="N",
        help="epochs with all negatives before the hard ones alone count" + default("hard_after"),
    )


def class_settings(args: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """The settings of the configuration that these flags describe; contradictions are refused."""
    hard = {name: getattr(args, f"hard_{name}") for name in HARD}
    hard = {name: value for name, value in hard.items() if value is not None}
    shown = [f"--hard-{name.replace('_', '-')}" for name in hard]
    if args.objective != "superloss":
        for flag in ("super_loss", "positives", "negatives", "hard_after"):
            if getattr(args, flag) is not None:
                shown.append(f"--{flag.replace('_', '-')}")
        if shown:
            parser.error(f"{shown[0]}: expected --objective superloss, found {args.objective}")
    if args.objective not in OBJECTIVES:
        if args.projection_head is not None:
            parser.error(
                f"--projection-head: expected an objective of classes, found {args.objective}"
            )
        return {}
    if len(hard) > 1:
        parser.error(f"{' and '.join(shown)}: expected one of them at most")
    if args.hard_after is not None and not hard:
        parser.error(f"--hard-after: expected one of {', '.join(hard_flags())}, found none")
    epochs = args.epochs or DEFAULTS.epochs
    if args.hard_after is not None and args.hard_after >= epochs:
        parser.error(
            f"--hard-after: expected fewer than --epochs {epochs}, found {args.hard_after}"
        )
    return {"hard_negatives": hard, "per_class": True}


def hard_flags() -> list[str]:
    return [f"--hard-{name.replace('_', '-')}" for name in HARD]


def check_class_tasks(
    args: argparse.Namespace, parser: argparse.ArgumentParser, tasks: tuple[str, ...]
) -> None:
    """Refuse tasks that have no classes, or no single embedding an example."""
    for task in tasks:
        if not has_classes(args, task):
            parser.error(f"--objective {args.objective}: expected tasks with classes, found {task}")
    check_one_vector(args, parser, tasks)
