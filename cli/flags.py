"""Flags that training modes share; `run_config.py` says what they make.

A flag that is not given is None and takes the default of `RunConfig`, so that a mode can tell what
was asked for from what goes without saying.
"""

from __future__ import annotations

import argparse

from cli.protocol import add_pair_flag, add_protocol_flags
from cli.values import COUNT, default, every, limit, parser_of, path
from multitask.choices import KEEPS, LINEARS, METRICS, POOLINGS, PRECISIONS, TASK_OPTIONS
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.values import NUMBERS

TRAINING_NUMBERS = (
    ("epochs", "N", "how many epochs"),
    ("steps_per_epoch", "N", "optimiser steps of an epoch; by default the data decide"),
    ("batch_size", "N", "examples of a batch"),
    ("micro_batch", "N", "examples that go through the model at a time, to save memory"),
    ("lr", "RATE", "peak learning rate of the encoder"),
    ("head_lr", "RATE", "peak learning rate of the heads"),
    ("weight_decay", "X", "AdamW's decay of weight matrices"),
    ("warmup", "SHARE", "share of the steps over which the rates rise"),
    ("clip", "NORM", "largest norm of a step's gradient"),
    (
        "similarity_scale",
        "X",
        "compute the squared error of similarities on labels from 0 to X; BEES has 5",
    ),
    ("probe_epochs", "N", "epochs that train only the heads, before the encoder (LP-FT)"),
    ("evaluate_every", "N", "epochs from one dev score and checkpoint to the next"),
    ("patience", "N", "stop after N epochs that brought nothing better"),
    ("seed", "N", "of everything drawn at random"),
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
        "--limit",
        type=limit,
        nargs="+",
        metavar="N",
        help="train on N examples of each task, drawn at random, or on a share of them such as "
        "0.25, which keeps the proportions of the tasks; TASK=N for one task",
    )
    data.add_argument(
        "--dev-limit", type=COUNT, metavar="N", help="score only N dev examples of each task"
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
        add_head_flags(parser)
    add_optimisation_flags(parser, defaults, heads)
    add_output_flags(parser)


def add_head_flags(parser: argparse.ArgumentParser) -> None:
    """Options of each task."""
    group = parser.add_argument_group("heads")
    for task, options in TASK_OPTIONS.items():
        for option, choices in options.items():
            text = f"{option} of the {task} task (default: {choices[0]})"
            group.add_argument(f"--{task}-{option}", choices=choices, help=text)


def add_optimisation_flags(
    parser: argparse.ArgumentParser, defaults: RunConfig | None, heads: bool
) -> None:
    """How long, in what steps, with what precision."""
    training = parser.add_argument_group("training")
    for name, metavar, text in TRAINING_NUMBERS:
        flag, kind = f"--{name.replace('_', '-')}", parser_of(NUMBERS[name])
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


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Where to, and what becomes of a run that is there."""
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


def add_precision(group: argparse._ArgumentGroup) -> None:
    """Of an encoder in use, in modes that do not train."""
    group.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=PRECISIONS[0],
        help=f"of the encoder (default: {PRECISIONS[0]})",
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
