"""Flags shared by the modes that search the sentences of a file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.settings_flags import Flags, path
from common.errors import UserError
from multitask.config import RunConfig
from multitask.run_settings import MACHINE

if TYPE_CHECKING:
    import numpy as np

    from minbert.bi_encoder import BiEncoder


def add_sentence_file(files: argparse._ArgumentGroup, required: bool = True) -> None:
    """Add the flags of a file of sentences."""
    files.add_argument(
        "--input",
        type=path,
        required=required,
        metavar="FILE",
        help="text file with one sentence per line, or a .csv, .tsv or .jsonl file with --column",
    )
    files.add_argument("--column", metavar="NAME", help="column or field that holds the sentences")


def check_output(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    endings: tuple[str, ...],
    key: str = "output",
) -> None:
    """Check, before any computation, that --output can be written and may be replaced.

    `key` is the name of another flag of an output file.
    """
    target, flag = Path(getattr(args, key)), f"--{key.replace('_', '-')}"
    if target.suffix.lower() not in endings:
        shown = " or ".join(endings)
        parser.error(f"{flag}: expected a name that ends in {shown}, found {target.name}")
    if target.is_dir():
        raise UserError(f"{target}: expected a file or nothing, found a folder")
    if args.input and target.exists() and target.samefile(args.input):
        raise UserError(f"{target}: expected another {flag} than the --input")
    if target.exists() and not args.overwrite:
        raise UserError(f"{target}: found an existing file; --overwrite would replace it")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(target.parent, os.W_OK):
        raise UserError(f"{target.parent}: cannot be written")


def add_corpus_flags(parser: Any, required: bool = True, further: tuple[str, ...] = ()) -> None:
    """Add the flags of a searched file and its encoder; `further` are settings with a flag."""
    files = parser.add_argument_group("files")
    add_sentence_file(files, required)
    files.add_argument(
        "--embedded",
        type=path,
        metavar="FILE.npy",
        help="embeddings of the sentences, from --mode encode with the same encoder",
    )
    files.add_argument(
        "--run", type=path, metavar="RUN", help="use the encoder of the best epoch of a run"
    )
    parser.flags = flags = Flags(parser)
    flags.add_config(("encoder", "pooling", "precision", *MACHINE, *further))


def load_corpus(args: argparse.Namespace, parser: Any) -> tuple[list[str], np.ndarray, BiEncoder]:
    """Return the sentences, their embeddings of unit length (n, H), and the encoder."""
    check_encoder(args, parser)
    from serving.mining import embeddings_of, read_sentence_list

    sentences = read_sentence_list(Path(args.input), args.column)
    args.config = config = RunConfig(**parser.flags.given(args, ()))
    model = load_encoder(args, config)
    kept = Path(args.embedded) if args.embedded else None
    return sentences, embeddings_of(sentences, model, kept, config.precision), model


def check_encoder(args: argparse.Namespace, parser: Any) -> None:
    """End the program if two encoders are given."""
    if args.run and args.encoder:
        parser.error("--run and --encoder: expected at most one of them")


def load_encoder(args: argparse.Namespace, config: RunConfig) -> BiEncoder:
    """Return the encoder of --run or --encoder on its device."""
    from minbert.bi_encoder import BiEncoder
    from minbert.linear import choose_device
    from multitask.run_folder import RunFolder

    encoder: str | Path = config.encoder
    if args.run:
        encoder = RunFolder(Path(args.run)).weights()
        RunFolder(Path(args.run)).check_embeds_texts()
    model = BiEncoder.from_pretrained(encoder, config.pooling, config.linear)
    model.to(choose_device(config.device))
    return model
