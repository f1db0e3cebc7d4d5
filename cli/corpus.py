"""Flags shared by the modes that search the sentences of a file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.settings_flags import USE_AGAIN, Flags, path
from common.errors import UserError
from multitask.config import RunConfig
from multitask.run_settings import MACHINE

if TYPE_CHECKING:
    import numpy as np

    from minbert.bi_encoder import BiEncoder


def add_sentence_file(files: argparse._ArgumentGroup) -> None:
    """Add the flags of a file of sentences."""
    files.add_argument(
        "--input",
        type=path,
        required=True,
        metavar="FILE",
        help="text file with one sentence per line, or a .csv, .tsv or .jsonl file with --column",
    )
    files.add_argument("--column", metavar="NAME", help="column or field that holds the sentences")


def add_run(files: argparse._ArgumentGroup) -> None:
    """Add the flags of a run whose encoder is used."""
    files.add_argument(
        "--run", type=path, metavar="RUN", help="use the encoder of the best epoch of a run"
    )
    files.add_argument(
        "--task",
        metavar="TASK",
        help="use the adapter of this task of the run (default: the shared encoder)",
    )
    files.add_argument("--use", type=path, action="append", metavar="FILE.py", help=USE_AGAIN)


def check_run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Check that the encoder is that of a run or another one."""
    if args.run and args.encoder:
        parser.error("--run and --encoder: expected at most one of them")
    for flag in ("task", "use"):
        if getattr(args, flag) and not args.run:
            parser.error(f"--{flag}: expected --run RUN, found none")


def check_output(
    args: argparse.Namespace, parser: argparse.ArgumentParser, endings: tuple[str, ...]
) -> None:
    """Check, before any computation, that --output can be written and may be replaced."""
    target = Path(args.output)
    if target.suffix.lower() not in endings:
        shown = " or ".join(endings)
        parser.error(f"--output: expected a name that ends in {shown}, found {target.name}")
    if target.is_dir():
        raise UserError(f"{target}: expected a file or nothing, found a folder")
    if args.input and target.exists() and target.samefile(args.input):
        raise UserError(f"{target}: expected another --output than the --input")
    if target.exists() and not args.overwrite:
        raise UserError(f"{target}: found an existing file; --overwrite would replace it")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(target.parent, os.W_OK):
        raise UserError(f"{target.parent}: cannot be written")


def add_corpus_flags(parser: Any) -> None:
    files = parser.add_argument_group("files")
    add_sentence_file(files)
    files.add_argument(
        "--embedded",
        type=path,
        metavar="FILE.npy",
        help="embeddings of the sentences, from --mode encode with the same encoder",
    )
    add_run(files)
    parser.flags = flags = Flags(parser)
    flags.add_config(("encoder", "pooling", "precision", *MACHINE))


def load_corpus(args: argparse.Namespace, parser: Any) -> tuple[list[str], np.ndarray, BiEncoder]:
    """Return the sentences, their embeddings of unit length (n, H), and the encoder."""
    check_run(args, parser)
    from minbert.bi_encoder import BiEncoder
    from minbert.linear import choose_device
    from serving.mining import embeddings_of, read_sentence_list
    from serving.run_encoder import encoder_of_run

    sentences = read_sentence_list(Path(args.input), args.column)
    args.config = config = RunConfig(**parser.flags.given(args, ()))
    if args.run:
        model = encoder_of_run(Path(args.run), config, args.task, parser.outside)
    else:
        model = BiEncoder.from_pretrained(config.encoder, config.pooling, config.linear)
        model.to(choose_device(config.device))
    kept = Path(args.embedded) if args.embedded else None
    return sentences, embeddings_of(sentences, model, kept, config.precision), model
