"""Flags of pre-training that an objective does not have, or wants."""

from __future__ import annotations

import argparse

from cli import classes
from multitask.choices import PAIRS_OF_TEXTS

WITHOUT_TEMPERATURE = ("triplet", "class-triplet", "npair")


def check_objective(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse flags that an objective does not have."""
    name = args.objective
    if (args.nli is not None) != (name == "nli"):
        found = "none" if args.nli is None else f"--objective {name}"
        parser.error(f"--nli: expected it with --objective nli, found {found}")
    check_text(args, parser)
    if args.margin is not None and name not in ("triplet", "class-triplet"):
        parser.error(f"--margin: expected --objective triplet or class-triplet, found {name}")
    if args.contrast_temperature is not None and name in WITHOUT_TEMPERATURE:
        parser.error(
            f"--contrast-temperature: expected another --objective than "
            f"{', '.join(WITHOUT_TEMPERATURE)}, found {name}"
        )
    if args.projection and name in classes.OBJECTIVES:
        parser.error(f"--projection: expected --projection-head with --objective {name}")
    if name not in classes.OBJECTIVES:
        for flag in ("protocol", "shots", "drop_leaks", "pair", "classes"):
            if getattr(args, flag):
                shown = flag.replace("_", "-")
                parser.error(f"--{shown}: expected an objective of classes, found {name}")
    if args.head_lr is not None and not (
        args.projection or args.projection_head in ("linear", "nonlinear")
    ):
        parser.error(
            "--head-lr: expected --projection or --projection-head, the only layers beside the "
            "encoder"
        )
    if args.batch_size == 1 and name != "triplet":
        parser.error("--batch-size: expected 2 or more, for the others of a batch are negatives")


def check_text(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse text that an objective does not read, and columns of none or of too few or many."""
    name, columns = args.objective, len(args.text_column or ())
    if args.text is None:
        if columns:
            parser.error("--text-column: expected --text")
    elif name in PAIRS_OF_TEXTS:
        if columns != 2:
            parser.error(f"--text-column: expected two with --objective {name}, found {columns}")
        if len(set(args.text_column)) == 1:
            parser.error(f"--text-column: expected two, found {args.text_column[0]} twice")
    elif name != "simcse":
        readers = ", ".join(("simcse", *PAIRS_OF_TEXTS))
        parser.error(f"--text: expected --objective {readers}, found {name}")
    elif columns > 1:
        parser.error(f"--text-column: expected one with --objective simcse, found {columns}")
