"""Find the sentences nearest to queries: run.py --mode similar --input FILE --query TEXT

Empty sentences are counted, and are not found. With --search int8 or binary, all rows are compared
by codes of one byte or one bit per number, and the best of them by cosines. The codes are kept
beside the file of --embedded.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from cli.corpus import SEARCHES, add_corpus_flags, add_search_flag, check_output_file, load_corpus
from cli.settings_flags import path
from common.argument_types import typed
from common.csv_rows import row_writer
from common.settings import Count

RESCORE = 4
ENDINGS = (".csv", ".tsv", ".jsonl")
HEADER = ("query", "row", "cosine", "text")


def add_flags(parser: argparse.ArgumentParser) -> None:
    query = parser.add_mutually_exclusive_group(required=True)
    query.add_argument(
        "--query", metavar="TEXT", help="text to search for (this or --queries is required)"
    )
    query.add_argument(
        "--queries",
        type=path,
        metavar="FILE",
        help="file of texts to search for: one per line, or with --queries-column",
    )
    parser.add_argument("--queries-column", metavar="NAME", help="column that holds the queries")
    parser.add_argument(
        "--top", type=typed(Count), default=10, metavar="N", help="number of results (default: 10)"
    )
    add_search_flag(parser, tuple(SEARCHES), "their best candidates are compared in float32")
    parser.add_argument(
        "--rescore",
        type=typed(Count),
        metavar="N",
        help=f"candidates of the first pass, as a multiple of --top (default: {RESCORE})",
    )
    parser.add_argument(
        "--output",
        type=path,
        metavar="FILE",
        help="write query, row, cosine and text of each result to a .csv, .tsv or .jsonl file",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    add_corpus_flags(parser)


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from common.atomic_files import atomic_writer
    from common.errors import is_unsafe, one_line
    from reports.tables import shown_table

    if args.query is not None and (not args.query.strip() or any(map(is_unsafe, args.query))):
        parser.error(f"--query: expected a text, found {args.query!r}")
    if args.queries_column and not args.queries:
        parser.error("--queries-column: expected --queries FILE, found none")
    if args.rescore and args.search not in SEARCHES:
        parser.error(f"--rescore: expected --search {' or '.join(SEARCHES)}, found exact")
    if args.output:
        check_output_file(args, parser, ENDINGS)
    queries = [args.query] if args.query is not None else read_queries(args)
    corpus = load_corpus(args, parser, queries=True)
    from serving.rows import texts_of
    from serving.search import recall, search

    vectors = corpus.model.encode(queries, corpus.precision, normalize=True)
    rescore = args.rescore or RESCORE
    found = search(
        corpus.rows,
        vectors,
        args.top,
        corpus.index,
        candidates=rescore * args.top,
        progress=args.query is None,
    )
    texts = texts_of(Path(args.input), args.column, found.rows.flat)

    def results() -> Iterator[tuple[str, int, float, str]]:
        for query, rows, cosines in zip(queries, *found, strict=True):
            for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
                yield query, row + 1, cosine, texts[row]

    if args.output:
        target = Path(args.output)
        with atomic_writer(target) as file:
            write_results(file, results(), target.suffix.lower())
        print(f"{found.rows.size:,} results of {len(queries):,} queries: {target}")
    else:
        header, several = ["query", "cosine", "row", "sentence"], args.query is None
        table = [[one_line(q), f"{c:.4f}", str(row), one_line(t)] for q, row, c, t in results()]
        print(shown_table(header if several else header[1:], [r[not several :] for r in table]))
    if corpus.index is not None:
        share, sample = recall(corpus.rows, corpus.index, args.top, rescore)
        print(f"recall of the first pass: {share:.3f} on {sample} queries")
    return 0


def read_queries(args: argparse.Namespace) -> list[str]:
    """Return the texts of --queries; empty ones are counted, and have no results."""
    from serving.empty_texts import is_empty, warn_of_empty_texts
    from serving.rows import read_sentence_list

    found = read_sentence_list(Path(args.queries), args.queries_column)
    kept = [text for text in found if not is_empty(text)]
    warn_of_empty_texts(len(found) - len(kept), len(found), "are not searched for")
    return kept


def write_results(
    file: TextIO, results: Iterator[tuple[str, int, float, str]], ending: str
) -> None:
    """Write one result per row: query, row from 1, cosine and text."""
    rows = ((query, row, round(cosine, 6), text) for query, row, cosine, text in results)
    if ending == ".jsonl":
        for row in rows:
            one = dict(zip(HEADER, row, strict=True))
            file.write(json.dumps(one, ensure_ascii=False) + "\n")
        return
    writer = row_writer(file, "," if ending == ".csv" else "\t")
    writer.writerow(HEADER)
    writer.writerows(rows)
