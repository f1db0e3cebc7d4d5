"""Flags and steps of silver pairs in --mode mine: pairs that a trained run labels."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from cli.corpus import SIZE, check_output, check_run, load_encoder
from cli.settings_flags import flag, path
from common.argument_types import typed
from common.entry_point import print_error, program
from common.errors import RunError
from common.settings import Count
from multitask.config import RunConfig
from multitask.run_settings import READING

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
    check_output(args, parser, (".csv", ".tsv"), "as_task")
    from common.run_files import EXPORTED
    from multitask.run_folder import RunFolder
    from reports.tables import shown_table
    from serving import silver
    from serving.mining import embeddings_of
    from serving.proposals import random_pairs, semantic_pairs
    from serving.run_encoder import report_precision

    given = RunConfig(**parser.flags.given(args, ()))
    teacher, target = Path(args.teacher), Path(args.as_task)
    if (teacher / EXPORTED).exists():
        raise RunError(f"{teacher}: expected the folder of a run, found an export")
    config = RunFolder(teacher).task_config(parser.outside)
    changed = {key: getattr(args, key) for key in ("data", "device") if getattr(args, key)}
    config = config.changed(**changed) if changed else config
    task = silver.pair_task(config, args.task, teacher)
    pool = silver.pool_of(config, task)
    count = args.pairs or PAIRS
    how = {"proposals": args.proposals or PROPOSALS[0], "seed": given.seed}
    if how["proposals"] == "random":
        found = random_pairs(len(pool.sentences), pool.gold, count, given.seed)
    else:
        near = args.neighbours or NEIGHBOURS
        name = Path(args.run or given.encoder).name
        how |= {"encoder": name, "neighbours": near}
        how |= {key: value for key in SIZE if (value := getattr(args, key)) is not None}
        encoder = load_encoder(args, given, parser)
        precision = encoder.choose_precision(given.precision)
        how["precision"] = precision.precision
        embeddings = embeddings_of(pool.sentences, encoder, precision.precision)
        found = semantic_pairs(embeddings, pool.gold, near, count, given.seed)
    if not len(found.pairs):
        raise RunError(f"{teacher}: expected pairs of {task.name} that are not gold, found none")
    texts = [[pool.sentences[row] for row in column] for column in found.pairs.T]
    try:
        scores = silver.scores_of(teacher, config, task, texts)
    except KeyboardInterrupt:
        line = f"interrupted; {target} was not written; the same command goes on"
        return print_error(program(), line, 130)
    scale = silver.scale_of(config, task)
    labels = silver.written_labels(task, scores, scale)
    provenance = silver.provenance_of(teacher, task, pool, found, how)
    silver.write_silver(target, task, texts, labels, provenance)
    if how["proposals"] == "semantic":
        report_precision(given.precision, precision)
    print(shown_table(*silver.summary(task, pool, found, labels, scores)))
    if len(found.pairs) < count:
        more = "" if how["proposals"] == "random" else "; more --neighbours give more"
        print(f"only {len(found.pairs):,} of {count:,} pairs found{more}")
    own = silver.description(target, task, silver.type_of(config, task), scale)
    print(f"\n{target}: more examples of {task.name} with --silver {shlex.quote(str(target))}")
    # Auxiliary: no label of the teacher selects the epoch.
    print(f"or a task of its own, beside {task.name}: --auxiliary {shlex.quote(own)}")
    return 0
