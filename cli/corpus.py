"""Flags shared by the modes that search the sentences of a file."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.settings_flags import USE, USE_AGAIN, Flags, flag, path
from common.argument_types import typed
from common.errors import TruncationWarning, UserError
from common.settings import Count
from multitask.settings.config import RunConfig
from multitask.settings.run_settings import MACHINE, READING

if TYPE_CHECKING:
    import numpy as np

    from minbert.bi_encoder import BiEncoder
    from serving.quantized import Index
    from serving.rows import Rows

EXACT = "exact"
OF_RUN = {"long": "head, or that of --run", "max_tokens": "the encoder's, or that of --run"}
SEARCHES = {  # other values of --search: the codes of serving/quantized.py
    "int8": "a first pass with one byte per number",
    "binary": "a first pass with one bit per number",
}


@dataclass(frozen=True)
class Corpus:
    """The embeddings of a searched file, their index for a first pass, and the encoder.

    `precision` is that of the encoder.
    """

    rows: Rows
    index: Index | None
    model: BiEncoder
    precision: str


def add_sentence_file(files: argparse._ArgumentGroup, required: bool = True) -> None:
    """Add the flags of a file of sentences."""
    files.add_argument(
        "--input",
        type=path,
        required=required,
        metavar="FILE",
        help="text file with one sentence per line, or a .csv, .tsv, .jsonl or .parquet file with "
        "--column",
    )
    files.add_argument("--column", metavar="NAME", help="column or field that holds the sentences")


def add_run(files: argparse._ArgumentGroup, task_help: str = "") -> None:
    """Add the flags of a run whose encoder is used; `task_help` is a further use of --task."""
    files.add_argument(
        "--run",
        type=path,
        metavar="RUN",
        help="use the encoder kept by a run: that of its best epoch, or of the last one if it was "
        "trained with --keep last",
    )
    files.add_argument(
        "--task",
        metavar="TASK",
        help=f"use the adapter of this task of the run (default: the shared encoder){task_help}",
    )
    files.add_argument("--use", help=USE_AGAIN, **USE)


SIZE = {
    "width": "keep the first N dimensions of embeddings only (default: all)",
    "layers": "pool the states after layer N, and skip the later ones (default: the last layer)",
}


def add_size(files: argparse._ArgumentGroup) -> None:
    """Add the flags of smaller embeddings."""
    for key, text in SIZE.items():
        files.add_argument(flag(key), type=typed(Count), metavar="N", help=text)


def check_run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Check that the encoder is that of a run or another one."""
    if args.run and args.encoder:
        parser.error("--run and --encoder: expected at most one of them")
    for name in ("task", "use"):
        if getattr(args, name) and not (args.run or getattr(args, "teacher", None)):
            parser.error(f"--{name}: expected --run RUN, found none")


def check_output_file(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    endings: tuple[str, ...],
    key: str = "output",
) -> None:
    """Check, before any computation, that --output can be written and may be replaced.

    `key` is the name of another flag of an output file.
    """
    target, name = Path(getattr(args, key)), flag(key)
    if target.suffix.lower() not in endings:
        shown = " or ".join(endings)
        parser.error(f"{name}: expected a name that ends in {shown}, found {target.name}")
    if target.is_dir():
        raise UserError(f"{target}: expected a file or nothing, found a folder")
    for read in ("input", "queries", "embedded"):
        if (file := getattr(args, read, None)) and is_one_of(target, [Path(file)]):
            raise UserError(f"{target}: expected another {name} than the {flag(read)}")
    if target.exists() and not args.overwrite:
        raise UserError(f"{target}: found an existing file; --overwrite would replace it")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(target.parent, os.W_OK):
        raise UserError(f"{target.parent}: cannot be written; choose another {name}")


def is_one_of(target: Path, files: Iterable[Path]) -> bool:
    """Return whether a target would replace one of these files, by whatever path."""
    return target.exists() and any(one.exists() and target.samefile(one) for one in files)


def add_corpus_flags(
    parser: Any, required: bool = True, further: tuple[str, ...] = (), task_help: str = ""
) -> None:
    """Add the flags of a searched file and its encoder; `further` are settings with a flag."""
    files = parser.add_argument_group("files")
    add_sentence_file(files, required)
    files.add_argument(
        "--embedded",
        type=path,
        metavar="FILE.npy",
        help="embeddings of the sentences, from --mode encode with the same encoder",
    )
    add_run(files, task_help)
    parser.flags = flags = Flags(parser, defaults=OF_RUN)
    flags.add_config(("encoder", "pooling", *READING, "precision", *MACHINE, *further))
    add_size(files)


def add_search_flag(parser: Any, names: tuple[str, ...], note: str) -> None:
    """Add the flag that selects the search, exact or with a first pass by one of `names`."""
    known = [f"{EXACT}: every row in float32", *(f"{name}: {SEARCHES[name]}" for name in names)]
    parser.add_argument(
        "--search",
        choices=(EXACT, *names),
        help=f"{'; '.join(known)}; {note} (default: {EXACT})",
    )


def load_corpus(args: argparse.Namespace, parser: Any, queries: bool = False) -> Corpus:
    """Return the embeddings of the sentences, with an index for --search, and the encoder.

    `queries` tells whether the encoder is used for others, too, with --embedded.
    """
    check_run(args, parser)
    from serving.quantized import index_of
    from serving.rows import Rows, embeddings_of, empty_texts_of, read_sentence_list
    from serving.run_encoder import report_precision

    source = Path(args.input)
    config = RunConfig(**parser.flags.given(args, ()))
    if args.embedded:
        empty = empty_texts_of(source, args.column)
    else:
        sentences = read_sentence_list(source, args.column)
    model = load_encoder(args, config, parser, args.task)
    precision = model.choose_precision(config.precision)
    if args.embedded:
        rows = checked_rows(args, empty, model, precision.precision)
    else:
        rows = Rows.of(embeddings_of(sentences, model, precision.precision))
    index = index_of(rows, args.search) if args.search in SEARCHES else None
    if queries or not args.embedded:
        report_precision(config.precision, precision)
    return Corpus(rows, index, model, precision.precision)


def checked_rows(
    args: argparse.Namespace, empty: np.ndarray, model: BiEncoder, precision: str
) -> Rows:
    """Map the array of --embedded; `empty` (n,) are the rows of --input without a text.

    Raise UserError if a sample shows that it is of other sentences, or of another encoder.
    """
    from serving.rows import check_sample, open_rows, sample_of, texts_of

    source, sample = Path(args.input), sample_of(empty)
    rows = open_rows(Path(args.embedded), empty, model.width)
    some = [*texts_of(source, args.column, sample).values()]
    with warnings.catch_warnings():  # of texts that were cut when the array was made
        warnings.simplefilter("ignore", TruncationWarning)
        vectors = model.encode(some, precision, normalize=True)
    check_sample(rows, sample, vectors, source)
    return rows


def load_encoder(
    args: argparse.Namespace, config: RunConfig, parser: Any, task: str | None = None
) -> BiEncoder:
    """Return the encoder of --run, with the adapter of a task, or of --encoder on its device.

    Its embeddings have the size of --width and --layers.
    """
    from serving.run_encoder import open_encoder

    run = Path(args.run) if args.run else None
    return open_encoder(config, run, task, parser.outside, args.width, args.layers)
