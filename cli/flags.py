"""Flags that training modes share, and the configuration they make."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from multitask.config import RunConfig

# Plain copies of the registries' names, held equal to them by a test.
POOLINGS = ("mean", "cls", "max")
PRECISIONS = ("fp32", "bf16")
SAMPLINGS = ("round-robin", "annealed")
COMBINERS = ("sum", "pcgrad")
TASK_OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "sst": {"head": ("hidden", "softmax")},
    "qqp": {"head": ("difference", "concat")},
    "sts": {"head": ("hidden", "cosine"), "activation": ("relu", "sigmoid", "none")},
}
DEFAULTS = RunConfig(mode="", tasks=())


def number(
    kind: Callable[[str], float], low: float, high: float = float("inf"), above: bool = False
) -> Callable[[str], Any]:
    """A flag's type: a number from `low` (or above it) to `high`."""

    def parse(text: str) -> float:
        span = f"above {low:g}" if above else f"of at least {low:g}"
        span += f" and at most {high:g}" if high != float("inf") else ""
        what = "a whole number" if kind is int else "a number"
        try:
            value = kind(text)
        except ValueError:
            value = float("nan")
        if (
            not (low < value if above else low <= value)
            or not value <= high
            or value == float("inf")
        ):
            raise argparse.ArgumentTypeError(f"expected {what} {span}, found {text!r}")
        return value

    return parse


def add_training_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of every mode that trains."""
    d = DEFAULTS
    data = parser.add_argument_group("data")
    data.add_argument(
        "--data",
        default="sample",
        metavar="DIR",
        help="folder with the CS224N files, or the bundled sample",
    )
    data.add_argument(
        "--limit",
        type=number(int, 1),
        metavar="N",
        help="use the first N training examples of a task",
    )

    encoder = parser.add_argument_group("encoder")
    encoder.add_argument(
        "--encoder",
        default=d.encoder,
        metavar="NAME",
        help="minilm, bert-base-uncased, roberta-base, tiny, a folder, or a hub id owner/name",
    )
    encoder.add_argument(
        "--pooling",
        choices=POOLINGS,
        help="tokens -> one embedding; by default what the encoder's folder says, else mean",
    )
    encoder.add_argument("--freeze-encoder", action="store_true", help="train the heads alone")
    encoder.add_argument(
        "--init", metavar="RUN", help="start from the best epoch of the run in this folder"
    )

    heads = parser.add_argument_group("heads")
    for task, options in TASK_OPTIONS.items():
        for option, choices in options.items():
            heads.add_argument(
                f"--{task}-{option}",
                choices=choices,
                default=choices[0],
                help=f"{option} of the {task} task",
            )

    training = parser.add_argument_group("training")
    training.add_argument(
        "--epochs", type=number(int, 1), default=d.epochs, metavar="N", help="how many epochs"
    )
    training.add_argument(
        "--steps-per-epoch",
        type=number(int, 1),
        metavar="N",
        help="optimiser steps of an epoch; by default the sampling decides",
    )
    training.add_argument(
        "--batch-size",
        type=number(int, 1),
        default=d.batch_size,
        metavar="N",
        help="examples of a batch",
    )
    training.add_argument(
        "--lr",
        type=number(float, 0, above=True),
        default=d.lr,
        metavar="RATE",
        help="peak learning rate of the encoder",
    )
    training.add_argument(
        "--head-lr",
        type=number(float, 0, above=True),
        default=d.head_lr,
        metavar="RATE",
        help="peak learning rate of the heads",
    )
    training.add_argument(
        "--weight-decay",
        type=number(float, 0),
        default=d.weight_decay,
        metavar="X",
        help="AdamW's decay of weight matrices",
    )
    training.add_argument(
        "--warmup",
        type=number(float, 0, 1),
        default=d.warmup,
        metavar="SHARE",
        help="share of the steps over which the learning rate rises",
    )
    training.add_argument(
        "--clip",
        type=number(float, 0, above=True),
        default=d.clip,
        metavar="NORM",
        help="largest norm of a step's gradient",
    )
    training.add_argument(
        "--patience",
        type=number(int, 1),
        metavar="N",
        help="stop after N epochs that brought nothing better",
    )
    training.add_argument(
        "--seed",
        type=number(int, 0, 2**32 - 1),
        default=d.seed,
        metavar="N",
        help="of everything drawn at random",
    )
    training.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=d.precision,
        help="of the encoder's matrix products",
    )
    training.add_argument(
        "--device", default=d.device, metavar="NAME", help="auto, cpu, cuda or cuda:N"
    )

    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="folder of the run; by default one under runs/ named by the configuration",
    )
    output.add_argument(
        "--resume",
        action="store_true",
        help="go on with an unfinished run after its last finished epoch",
    )
    output.add_argument(
        "--overwrite", action="store_true", help="start again in a folder that holds a run"
    )


def training_config(args: argparse.Namespace, **mode: Any) -> RunConfig:
    """The configuration that the shared flags and a mode's own settings describe."""
    values = {f.name: getattr(args, f.name) for f in fields(RunConfig) if hasattr(args, f.name)}
    options = {
        task: {option: getattr(args, f"{task}_{option}") for option in TASK_OPTIONS[task]}
        for task in mode["tasks"]
    }
    return RunConfig(**(values | {"task_options": options} | mode))


def check_task_flags(
    args: argparse.Namespace, parser: argparse.ArgumentParser, tasks: tuple[str, ...]
) -> None:
    """Refuse a head's flag for a task that is not trained, and flags that contradict each other."""
    for task, options in TASK_OPTIONS.items():
        for option, choices in options.items():
            if task not in tasks and getattr(args, f"{task}_{option}") != choices[0]:
                parser.error(
                    f"--{task}-{option}: expected {task} among the tasks, found {', '.join(tasks)}"
                )
    if args.resume and args.overwrite:
        parser.error("--resume and --overwrite: expected at most one of them")
