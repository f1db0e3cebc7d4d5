"""Find the most similar pairs of sentences in a file: run.py --mode mine --input FILE

The search is exact: every pair is compared once, in blocks that need little memory. --search int8
finds the same pairs faster. Empty sentences are counted, and are in no pair.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TextIO

from cli.corpus import EXACT, add_corpus_flags, add_search_flag, check_output_file, load_corpus
from cli.settings_flags import path
from common.argument_types import typed
from common.csv_rows import row_writer
from common.progress import duration
from common.settings import Cosine, Count
from serving.prediction_table import escape_row

TOP, LOWEST = 100, -1.0
LONG = 10.0  # seconds of a search whose time is estimated


def add_flags(parser: argparse.ArgumentParser) -> None:
    add_corpus_flags(
        parser,
        required=False,
        further=("data", "seed"),
        task_help="; with --as-task, the task of --teacher, if it has several",
    )
    pairs = parser.add_argument_group("pairs")
    pairs.add_argument(
        "--top",
        type=typed(Count),
        metavar="N",
        help=f"maximum number of pairs (default: {TOP})",
    )
    pairs.add_argument(
        "--threshold",
        type=typed(Cosine),
        metavar="X",
        help="minimum cosine of a pair, up to rounding by 1e-6 (default: all pairs)",
    )
    add_search_flag(pairs, ("int8",), "it finds the same pairs, up to rounding by 1e-6")
    pairs.add_argument(
        "--output", type=path, metavar="FILE.tsv", help="output file (default: standard output)"
    )
    pairs.add_argument("--overwrite", action="store_true", help="replace an existing output")


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from common.atomic_files import atomic_writer

    target = Path(args.output) if args.output else None
    if target is not None:
        check_output_file(args, parser, (".tsv",))
    corpus = load_corpus(args, parser)
    rows, index = corpus.rows, corpus.index
    from serving.mining import expected_seconds, mine
    from serving.rows import texts_of

    searched = len(rows.there())
    every = searched * (searched - 1) // 2
    if (expected := expected_seconds(rows, index)) >= LONG:
        how = args.search or EXACT
        print(f"{every:,} pairs: about {duration(expected)} ({how})", file=sys.stderr)
    begin = time.perf_counter()
    lowest = LOWEST if args.threshold is None else args.threshold
    pairs = mine(rows, args.top or TOP, lowest, progress=True, index=index)
    seconds = time.perf_counter() - begin
    sentences = texts_of(Path(args.input), args.column, {*pairs.first, *pairs.second})

    def write(file: TextIO) -> None:
        writer = row_writer(file, "\t")
        writer.writerow(["cosine", "row", "other row", "sentence", "other sentence"])
        for one, other, cosine in zip(*pairs, strict=True):
            texts = sentences[one], sentences[other]
            row = [f"{cosine:.4f}", one + 1, other + 1, *texts]
            writer.writerow(escape_row(file, row))

    if target is None:
        write(sys.stdout)
    else:
        with atomic_writer(target) as file:
            write(file)
    line = f"{len(pairs.first):,} of {every:,} pairs in {seconds:.1f} s"
    print(f"{line}{f': {target}' if target else ''}", file=sys.stderr)
    return 0
