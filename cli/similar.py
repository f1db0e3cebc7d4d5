"""Find the sentences nearest to a query: run.py --mode similar --input FILE --query TEXT

Empty sentences are counted, and are not found.
"""

from __future__ import annotations

import argparse

from cli.corpus import add_corpus_flags, load_corpus
from cli.settings_flags import typed
from common.settings import Count


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--query", required=True, metavar="TEXT", help="text to search for")
    parser.add_argument(
        "--top", type=typed(Count), default=10, metavar="N", help="number of results (default: 10)"
    )
    add_corpus_flags(parser)


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from common.errors import one_line
    from reports.tables import shown_table

    if not args.query.strip() or not args.query.isprintable():
        parser.error(f"--query: expected a text, found {args.query!r}")
    sentences, embeddings, model = load_corpus(args, parser)
    from serving.mining import nearest

    query = model.encode([args.query], args.config.precision, normalize=True)
    rows, cosines = nearest(embeddings, query, args.top)
    table = [
        [f"{cosine:.4f}", str(row + 1), one_line(sentences[row])]
        for row, cosine in zip(rows[0], cosines[0], strict=True)
    ]
    print(shown_table(["cosine", "row", "sentence"], table))
    return 0
