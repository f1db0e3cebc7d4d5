"""Find the most similar pairs of sentences in a file: run.py --mode mine --input FILE

The search is exact: every pair is compared once, in blocks that need little memory.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path
from typing import TextIO

from cli.corpus import add_corpus_flags, check_output, load_corpus
from cli.settings_flags import path, typed
from common.settings import Cosine, Count
from serving.prediction_writer import escape_row


def add_flags(parser: argparse.ArgumentParser) -> None:
    add_corpus_flags(parser)
    pairs = parser.add_argument_group("pairs")
    pairs.add_argument(
        "--top",
        type=typed(Count),
        default=100,
        metavar="N",
        help="maximum number of pairs (default: 100)",
    )
    pairs.add_argument(
        "--threshold",
        type=typed(Cosine),
        default=-1.0,
        metavar="X",
        help="minimum cosine of a pair, up to rounding by 1e-6 (default: all pairs)",
    )
    pairs.add_argument(
        "--output", type=path, metavar="FILE.tsv", help="output file (default: standard output)"
    )
    pairs.add_argument("--overwrite", action="store_true", help="replace an existing output")


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from common.atomic_files import atomic_writer

    target = Path(args.output) if args.output else None
    if target is not None:
        check_output(args, parser, (".tsv",))
    sentences, embeddings, _ = load_corpus(args, parser)
    from serving.mining import mine

    begin = time.perf_counter()
    pairs = mine(embeddings, args.top, args.threshold, progress=True)
    seconds = time.perf_counter() - begin

    def write(file: TextIO) -> None:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
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
    every = len(sentences) * (len(sentences) - 1) // 2
    line = f"{len(pairs.first):,} of {every:,} pairs in {seconds:.1f} s"
    print(f"{line}{f': {target}' if target else ''}", file=sys.stderr)
    return 0
