"""Flags and steps of silver pairs in --mode mine: pairs that a trained run labels."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from cli.corpus import SIZE, check_output_file, check_run, is_one_of, load_encoder
from cli.settings_flags import flag, path
from common.argument_types import typed
from common.entry_point import if_interrupted
from common.errors import UserError
from common.settings import Count
from multitask.settings.config import RunConfig
from multitask.settings.run_settings import READING

PROPOSALS = ("semantic", "random")
FLAGS = ("proposals", "pairs", "neighbours", "seed", "data")
OTHERS = ("input", "column", "embedded", "top", "threshold", "search", "output")
PAIRS, NEIGHBOURS = 1000, 5


def add_silver_flags(parser: Any) -> None:
    group = parser.add_argument_group("silver pairs (instead of --input)")
    group.add_argument(
        "--teacher",
        type=path,
        metavar="RUN",
        help="run that labels pairs of the training sentences of its task, usually of --pair joint",
    )
    group.add_argument(
        "--as-task",
        type=path,
        metavar="FILE",
        help=".csv or .tsv file of the labelled pairs, from which modes single and multitask learn",
    )
    group.add_argument(
        "--proposals",
        choices=PROPOSALS,
        help="pair each sentence with its nearest ones (semantic, the default), or at random",
    )
    group.add_argument(
        "--pairs", type=typed(Count), metavar="N", help=f"number of pairs (default: {PAIRS})"
    )
    group.add_argument(
        "--neighbours",
        type=typed(Count),
        metavar="K",
        help=f"nearest sentences of each one, from which pairs are drawn (default: {NEIGHBOURS})",
    )


def check_flags(args: argparse.Namespace, parser: argparse.ArgumentParser) -> bool:
    """Return whether silver pairs are asked for; end the program for flags of the other kind."""
    silver = bool(args.teacher and args.as_task)
    if not silver and (args.teacher or args.as_task):
        found = "--teacher" if args.teacher else "--as-task"
        parser.error(f"--teacher and --as-task: expected both, found only {found}")
    for key in FLAGS if not silver else OTHERS:
        if getattr(args, key) is not None:
            wanted = "neither --teacher nor --as-task" if silver else "--teacher and --as-task"
            parser.error(f"{flag(key)}: expected {wanted} with it")
    if not silver and not args.input:
        parser.error("--input: expected a file, or --teacher RUN and --as-task FILE, found none")
    if silver and args.proposals == "random":
        for key in ("neighbours", "run", "encoder", "pooling", *READING, "precision", *SIZE):
            if getattr(args, key) is not None:
                parser.error(f"{flag(key)}: expected --proposals semantic, found random")
    if silver:
        check_run(args, parser)
    return silver


def main(args: argparse.Namespace, parser: Any) -> int:
    check_output_file(args, parser, (".csv", ".tsv"), "as_task")
    from multitask.storage.data_files import files
    from reports.tables import shown_table
    from serving import silver
    from serving.run_encoder import report_precision

    given = RunConfig(**parser.flags.given(args, ()))
    target, count = Path(args.as_task), args.pairs or PAIRS
    changed = {key: getattr(args, key) for key in ("data", "device") if getattr(args, key)}
    teacher = silver.open_teacher(Path(args.teacher), args.task, parser.outside, **changed)
    if is_one_of(target, files(teacher.config).values()):
        raise UserError(f"{target}: expected a new file, found one of the teacher's data")
    searched = None
    if args.proposals != "random":
        encoder = load_encoder(args, given, parser)
        precision = encoder.choose_precision(given.precision)
        name = Path(args.run or given.encoder).name
        cut = {key: value for key in SIZE if (value := getattr(args, key)) is not None}
        near = args.neighbours or NEIGHBOURS
        searched = silver.Search(encoder, name, near, precision.precision, cut)
    with if_interrupted(f"{target} was not written; the same command goes on"):
        found = silver.label_pairs(teacher, target, count, given.seed, searched)
    if searched is not None:
        report_precision(given.precision, precision)
    print(shown_table(*silver.summary(teacher.task, found)))
    if len(found.pairs) < count:
        more = "" if searched is None else "; more --neighbours give more"
        print(f"only {len(found.pairs):,} of {count:,} pairs found{more}")
    own, name = silver.description(teacher, target), teacher.task.name
    print(f"\n{target}: more examples of {name} with --silver {shlex.quote(str(target))}")
    # Auxiliary: no label of the teacher selects the epoch.
    print(f"or a task of its own, beside {name}: --auxiliary {shlex.quote(own)}")
    return 0
