"""Embed the sentences of a file: python run.py --mode encode --input FILE --output FILE.npy

The output is a NumPy array (n, H) of float32 with one row per sentence, in the order of the file.
The row of an empty text is NaN; a line gives the number of these rows.
`numpy.load(FILE, mmap_mode="r")` opens it without reading it into memory.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cli.corpus import add_run, add_sentence_file, add_size, check_output, check_run
from cli.settings_flags import Flags, path
from cli.training import VERBOSE
from common.atomic_files import atomic_path
from common.entry_point import print_error, program
from common.errors import UserError
from multitask.config import RunConfig
from multitask.run_settings import MACHINE, READING


def add_flags(parser: Any) -> None:
    files = parser.add_argument_group("files")
    add_sentence_file(files)
    files.add_argument("--output", type=path, required=True, metavar="FILE.npy", help="output file")
    add_run(files)
    files.add_argument("--overwrite", action="store_true", help="replace an existing output")
    files.add_argument("--verbose", action="store_true", help=VERBOSE)

    parser.flags = flags = Flags(parser)
    flags.add_config(("encoder", "pooling", *READING, "precision", *MACHINE))
    add_size(files)
    files.add_argument(
        "--normalize",
        action=argparse.BooleanOptionalAction,
        help="scale embeddings to unit length (default: as in the encoder's folder, else no)",
    )
    files.add_argument(
        "--compile",
        action="store_true",
        help="fuse operations between matrix products with torch.compile; useful for much text",
    )


def main(args: argparse.Namespace, parser: Any) -> int:
    from serving.encode_file import EncoderOfRun, encode_file
    from tasks.tables import read_sentences

    check_run(args, parser)
    config = RunConfig(**parser.flags.given(args, ()))
    source, target = Path(args.input), Path(args.output)
    check_output(args, parser, (".npy",))
    try:
        # A first pass over the file counts the sentences and finds errors early.
        total = sum(1 for _ in read_sentences(source, args.column))
        if not total:
            raise UserError(f"{source}: expected at least one sentence, found none")
        with atomic_path(target) as new:
            run = EncoderOfRun(Path(args.run), args.task, parser.outside) if args.run else None
            further = args.normalize, args.compile, args.verbose, run, args.width, args.layers
            shown = encode_file(config, source, args.column, total, new, *further)
    except KeyboardInterrupt:
        return print_error(program(), f"interrupted; {target} was not written", 130)
    print(f"{shown}: {target}")
    return 0
