"""Embed the sentences of a file: python run.py --mode encode --input FILE --output FILE.npy

The output is a NumPy array (n, H) of float32 with one row per sentence, in the order of the file.
The row of an empty text is NaN; a line gives the number of these rows.
`numpy.load(FILE, mmap_mode="r")` opens it without reading it into memory.

With --embedded FILE.npy --format faiss, qdrant or pgvector, an array that was written before, and
the sentences, are written as a file for a search engine.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cli.corpus import (
    OF_RUN,
    add_run,
    add_sentence_file,
    add_size,
    check_output_file,
    check_run,
    checked_rows,
    is_one_of,
    load_encoder,
)
from cli.settings_flags import Flags, flag, path
from cli.training import VERBOSE
from common.atomic_files import atomic_path
from common.entry_point import if_interrupted
from common.errors import UserError
from minbert.sources import find_folder
from multitask.settings.config import RunConfig
from multitask.settings.run_settings import MACHINE, READING
from serving.vector_files import FORMATS

NPY = "npy"


def add_flags(parser: Any) -> None:
    files = parser.add_argument_group("files")
    add_sentence_file(files)
    files.add_argument("--output", type=path, required=True, metavar="FILE", help="output file")
    files.add_argument(
        "--format",
        choices=(NPY, *FORMATS),
        default=NPY,
        help="npy: NumPy array; faiss: FAISS index; qdrant: JSON lines of points; pgvector: SQL "
        "and, beside it, rows for COPY; all but npy need --embedded (default: npy)",
    )
    files.add_argument(
        "--embedded",
        type=path,
        metavar="FILE.npy",
        help="embeddings of the sentences, written before by the same encoder (--encoder or "
        "--run), for another --format",
    )
    files.add_argument(
        "--faiss-index",
        metavar="KIND",
        help="kind of index of faiss.index_factory, such as HNSW32 or IVF4096,SQ8 (default: Flat)",
    )
    add_run(files)
    files.add_argument("--overwrite", action="store_true", help="replace an existing output")
    files.add_argument("--verbose", action="store_true", help=VERBOSE)

    parser.flags = flags = Flags(parser, defaults=OF_RUN)
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
    from tasks.tables import read_sentences

    check_run(args, parser)
    check_format(args, parser)
    config = RunConfig(**parser.flags.given(args, ()))
    source, target = Path(args.input), Path(args.output)
    if args.embedded:
        return convert(args, config, parser)
    check_output_file(args, parser, (".npy",))
    with if_interrupted(f"{target} was not written"):
        # A first pass over the file counts the sentences and finds errors early.
        total = sum(1 for _ in read_sentences(source, args.column))
        if not total:
            raise UserError(f"{source}: expected at least one sentence, found none")
        shown = encode(args, config, parser, total)
    print(f"{shown}: {target}")
    return 0


def encode(args: argparse.Namespace, config: RunConfig, parser: Any, total: int) -> str:
    """Write the array of `total` sentences; return a line with the speed."""
    with ThreadPoolExecutor(1) as meanwhile:
        if not args.run:  # check the weights' hash while PyTorch is imported
            meanwhile.submit(find_folder, config.encoder)
        from minbert.device import choose_device, warn_if_slow
        from minbert.kernel_choice import choose_linear
        from multitask.assembly import report_skipped
        from serving.encode_file import compile_layers, encode_file
        from serving.run_encoder import report_precision

    warn_if_slow(config.precision, choose_device(config.device))
    choice = choose_linear(config.linear)
    if args.verbose:
        print(f"linear layers on a CPU: {choice.kernel} ({choice.reason})")
    model = load_encoder(args, config.changed(linear=choice.kernel), parser, args.task)
    if args.verbose:
        report_skipped(model)
    precision = model.choose_precision(config.precision)
    if args.compile:
        compile_layers(model)
    source, normalize = Path(args.input), args.normalize
    with atomic_path(Path(args.output)) as new:
        line = encode_file(model, source, args.column, total, new, precision.precision, normalize)
    report_precision(config.precision, precision)
    return line


def check_format(args: argparse.Namespace, parser: Any) -> None:
    """Check that --format, --embedded and the flags of an encoder do not contradict."""
    if args.format == NPY:
        for key in ("embedded", "faiss_index"):
            if getattr(args, key) is not None:
                parser.error(f"{flag(key)}: expected --format {' or '.join(FORMATS)}, found npy")
        return
    if not args.embedded:
        wanted = "expected --embedded FILE.npy, an array of --mode encode, found none"
        parser.error(f"--format {args.format}: {wanted}")
    if args.faiss_index is not None and args.format != "faiss":
        parser.error(f"--faiss-index: expected --format faiss, found {args.format}")
    for key, given in {"normalize": args.normalize is not None, "compile": args.compile}.items():
        if given:
            parser.error(f"{flag(key)}: expected --format npy, found {args.format}")


def convert(args: argparse.Namespace, config: RunConfig, parser: Any) -> int:
    """Write the array of --embedded and the sentences in another format."""
    from multitask.assembly import report_skipped
    from serving.rows import empty_texts_of
    from serving.vector_files import Embedded, data_file, import_faiss
    from tasks.tables import read_sentences

    source, target, chosen = Path(args.input), Path(args.output), FORMATS[args.format]
    check_output_file(args, parser, (chosen.ending,))
    for file in (data_file(target),) if args.format == "pgvector" else ():
        if is_one_of(file, (source, Path(args.embedded))):
            raise UserError(f"{file}: expected another --output, which does not replace an input")
        if file.exists() and not args.overwrite:
            raise UserError(f"{file}: found an existing file; --overwrite would replace it")
    if args.format == "faiss":
        import_faiss()
    empty = empty_texts_of(source, args.column, "are left out")
    model = load_encoder(args, config, parser, args.task)
    if args.verbose:
        report_skipped(model)
    rows = checked_rows(args, empty, model, model.choose_precision(config.precision).precision)
    sentences = read_sentences(source, args.column)
    chosen.write(target, Embedded(rows, sentences, args.faiss_index or "Flat"))
    print(f"{len(rows.there()):,} x {rows.width}, {args.format}: {target}")
    return 0
