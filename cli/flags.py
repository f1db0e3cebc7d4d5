"""Flags that training modes share, and the configuration they make.

A flag that is not given is None and takes the default of `RunConfig`, so that a mode can tell what
was asked for from what goes without saying.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cli.protocol import add_pair_flag, add_protocol_flags, check_protocol
from cli.values import COUNT, DEFAULTS, MANY, RATE, default, every, number, path
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.stored import encoder_of
from tasks import CLUE, GLUE, PAIRS, REVIEWS

# Plain copies of the registries' names, held equal to them by a test.
POOLINGS = ("mean", "cls", "max")
PRECISIONS = ("fp32", "bf16")
KEEPS = ("best", "last")
METRICS = ("accuracy", "f1", "macro_f1", "matthews", "pearson", "spearman")
LINEARS = ("auto", "mkl", "onednn")
# Options of each task; the first choice is the default.
TASK_OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "sst": {"head": ("hidden", "softmax")},
    "qqp": {"head": ("difference", "concat"), "loss": ("cross-entropy", "with-contrastive")},
    "sts": {"head": ("hidden", "cosine"), "activation": ("relu", "sigmoid", "none")},
    **{name: {} for name in (*GLUE, *CLUE, *REVIEWS)},
}
# Objectives of a task with these losses, where they are more than the task itself.
OBJECTIVES: dict[tuple[str, str], tuple[str, ...]] = {
    ("qqp", "with-contrastive"): ("qqp/cross_entropy", "qqp/contrastive")
}
FIRST = "first-then-joint"  # the schedule that begins with one task
TRAINING_NUMBERS = (
    ("epochs", COUNT, "N", "how many epochs"),
    ("steps_per_epoch", COUNT, "N", "optimiser steps of an epoch; by default the data decide"),
    ("batch_size", COUNT, "N", "examples of a batch"),
    ("micro_batch", COUNT, "N", "examples that go through the model at a time, to save memory"),
    ("lr", RATE, "RATE", "peak learning rate of the encoder"),
    ("head_lr", RATE, "RATE", "peak learning rate of the heads"),
    ("weight_decay", number(float, 0, MANY), "X", "AdamW's decay of weight matrices"),
    ("warmup", number(float, 0, 1), "SHARE", "share of the steps over which the rates rise"),
    ("clip", RATE, "NORM", "largest norm of a step's gradient"),
    ("probe_epochs", COUNT, "N", "epochs of the heads alone, before the encoder moves (LP-FT)"),
    ("evaluate_every", COUNT, "N", "epochs from one dev score and checkpoint to the next"),
    ("patience", COUNT, "N", "stop after N epochs that brought nothing better"),
    ("seed", number(int, 0, 2**32 - 1), "N", "of everything drawn at random"),
)
VERBOSE = "say which linear layers are used, and why"


def add_training_flags(
    parser: argparse.ArgumentParser, defaults: RunConfig | None = None, heads: bool = True
) -> None:
    """Flags of every mode that trains, with the mode's own `defaults`; `heads` of the tasks."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "--data", type=path, metavar="DIR", help="folder with the CS224N files" + default("data")
    )
    data.add_argument(
        "--limit", type=COUNT, metavar="N", help="train on N examples of a task, drawn at random"
    )
    data.add_argument(
        "--dev-limit", type=COUNT, metavar="N", help="score N dev examples of a task alone"
    )

    encoder = parser.add_argument_group("encoder")
    add_encoder_flags(encoder)
    encoder.add_argument("--freeze-encoder", action="store_true", help="train the heads alone")
    encoder.add_argument(
        "--init", type=path, metavar="RUN", help="start from the best epoch of the run in a folder"
    )

    add_protocol_flags(data)
    add_pair_flag(encoder)
    if heads:
        group = parser.add_argument_group("heads")
        for task, options in TASK_OPTIONS.items():
            for option, choices in options.items():
                text = f"{option} of the {task} task (default: {choices[0]})"
                group.add_argument(f"--{task}-{option}", choices=choices, help=text)

    training = parser.add_argument_group("training")
    for name, kind, metavar, text in TRAINING_NUMBERS:
        flag = f"--{name.replace('_', '-')}"
        training.add_argument(flag, type=kind, metavar=metavar, help=text + default(name, defaults))
    training.add_argument(
        "--precision",
        choices=PRECISIONS,
        help="of the encoder's matrix products" + default("precision"),
    )
    training.add_argument(
        "--keep",
        choices=KEEPS,
        help="the epoch whose weights are kept: the best on dev, or the last" + default("keep"),
    )
    if heads:
        training.add_argument(
            "--select-by",
            choices=METRICS,
            help="dev metric that selects the best epoch, of the tasks that have it (default: "
            "accuracy; pearson of sts)",
        )
    add_machine_flags(training)

    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        type=path,
        metavar="DIR",
        help="folder of the run; by default one under runs/ named by the configuration",
    )
    output.add_argument(
        "--dry-run",
        action="store_true",
        help="show examples, passes, steps and expected time of every epoch, and train nothing",
    )
    output.add_argument("--verbose", action="store_true", help=VERBOSE)
    output.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint of the run"
    )
    output.add_argument(
        "--checkpoint-every",
        type=every,
        metavar="N|TIME",
        default=RunControl.checkpoint_every,
        help="write one after N steps, or a time such as 90s, 10m or 2h, as well as with the "
        "score of each epoch and when interrupted (default: 10m)",
    )
    output.add_argument(
        "--skip-limit",
        type=COUNT,
        metavar="N",
        default=RunControl.skip_limit,
        help="stop after N steps in a row with a loss or gradient that is not finite; fewer are "
        f"left out and counted (default: {RunControl.skip_limit})",
    )
    output.add_argument(
        "--overwrite", action="store_true", help="start again in a folder that holds a run"
    )


def add_encoder_flags(group: argparse._ArgumentGroup) -> None:
    """Which encoder, in every mode that loads one."""
    group.add_argument(
        "--encoder",
        metavar="NAME",
        help="minilm, bert-base-uncased, roberta-base, tiny, a folder, or a hub id owner/name, "
        "with @revision pinned to a commit or tag" + default("encoder"),
    )
    group.add_argument(
        "--pooling",
        choices=POOLINGS,
        help="tokens -> one embedding; by default what the encoder's folder says, else mean",
    )


def add_machine_flags(group: argparse._ArgumentGroup) -> None:
    """Flags of every mode in which the encoder runs."""
    group.add_argument(
        "--device", metavar="NAME", help="auto, cpu, cuda or cuda:N" + default("device")
    )
    group.add_argument(
        "--linear",
        choices=LINEARS,
        help="fp32 product of the linear layers on a CPU; auto measures once which is the faster"
        + default("linear"),
    )


def run_control(args: argparse.Namespace) -> RunControl:
    """What the flags of the group "output" say of the run in its folder."""
    return RunControl(
        resume=args.resume,
        overwrite=args.overwrite,
        verbose=args.verbose,
        checkpoint_every=args.checkpoint_every,
        skip_limit=args.skip_limit,
        command=shlex.join(["python", *sys.argv]) if sys.argv[0].endswith("run.py") else None,
    )


def training_config(
    args: argparse.Namespace, defaults: RunConfig | None = None, **mode: Any
) -> RunConfig:
    """The configuration that the shared flags and a mode's own settings describe."""
    given = {f.name: getattr(args, f.name, None) for f in fields(RunConfig)}
    given = {name: value for name, value in given.items() if value is not None}
    if getattr(args, "init", None) is not None:
        given["encoder"] = encoder_of(Path(args.init))
    options = {
        task: {
            option: getattr(args, f"{task}_{option}")
            for option, choices in TASK_OPTIONS.get(task, {}).items()
            if getattr(args, f"{task}_{option}", None) not in (None, choices[0])
        }
        for task in mode["tasks"]
    }
    if getattr(args, "pair", None) == "joint":
        for task in PAIRS:
            if task in options:
                options[task]["pair"] = args.pair
    if getattr(args, "classes", None):
        for task in options:
            options[task]["classes"] = str(args.classes)
    options = {task: given for task, given in options.items() if given}
    return replace(defaults or DEFAULTS, **(given | {"task_options": options} | mode))


def check_training_flags(
    args: argparse.Namespace, parser: argparse.ArgumentParser, tasks: tuple[str, ...]
) -> None:
    """Refuse flags that would do nothing, or that contradict each other."""
    for task, options in TASK_OPTIONS.items():
        for option in options:
            if task not in tasks and getattr(args, f"{task}_{option}", None) is not None:
                parser.error(
                    f"--{task}-{option}: expected {task} among the tasks, found {', '.join(tasks)}"
                )
    check_protocol(args, parser, tasks)
    if args.resume and args.overwrite:
        parser.error("--resume and --overwrite: expected at most one of them")
    check_encoder(args, parser)
    if args.keep == "last" and args.patience is not None:
        parser.error("--keep last and --patience: expected one of them")
    if args.probe_epochs is not None:
        if args.freeze_encoder:
            parser.error("--probe-epochs and --freeze-encoder: expected one of them")
        epochs = args.epochs or DEFAULTS.epochs
        if args.probe_epochs >= epochs:
            parser.error(
                f"--probe-epochs: expected fewer than --epochs {epochs}, found {args.probe_epochs}"
            )
        if getattr(args, "sampling", None) == "hybrid" or getattr(args, "schedule", None) == FIRST:
            parser.error(
                "--probe-epochs: expected all tasks in the first epochs, found one alone "
                f"(--sampling hybrid or --schedule {FIRST})"
            )
    if args.freeze_encoder and args.lr is not None:
        parser.error("--freeze-encoder and --lr: expected --head-lr alone")
    if args.init and args.output and Path(args.init).resolve() == Path(args.output).resolve():
        parser.error("--init and --output: expected two folders, found the same")


def check_encoder(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse another encoder than that of the run to start from."""
    if args.init is not None and args.encoder is not None:
        brought = encoder_of(Path(args.init))
        if args.encoder != brought:
            parser.error(
                f"--encoder: expected {brought}, which --init brings, found {args.encoder}"
            )
