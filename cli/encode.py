"""Embed the sentences of a file: python run.py --mode encode --input FILE --output FILE.npy

The output is a NumPy array (n, H) of float32 with one row per sentence, in the order of the file.
The row of an empty text is NaN. A printed line gives the number of these rows.
`numpy.load(FILE, mmap_mode="r")` opens it without reading it into memory.
"""

import argparse
import sys
import time
from pathlib import Path

from cli.flags import LAYOUT, USE_AGAIN, Parser, check_output_file, path, typed
from common.errors import UserError
from common.files import atomic_path
from multitask.settings.config import RunConfig
from tasks.csv_files import Layout
from tasks.own_tasks import layout_keys


def add_flags(parser: Parser) -> None:
    add = parser.add_argument_group("files").add_argument
    text = "text file with a sentence per line, or a table such as .csv with --text (required)"
    add("--input", type=path, required=True, metavar="FILE", help=text)
    add("--text", metavar="COLUMN", help="column or field that holds the sentences")
    add("--table", **LAYOUT)
    add("--output", type=path, required=True, metavar="FILE", help="output file (required)")
    text = "use the encoder of a run: of the best epoch or, with --keep last, of the last one"
    add("--run", type=path, metavar="RUN", help=text)
    text = "in a run with branches, use the layers of this task (default: the shared encoder)"
    add("--task", metavar="TASK", help=text)
    add("--use", **USE_AGAIN)
    add("--overwrite", action="store_true", help="replace an existing output")
    text = "scale embeddings to unit length; false: do not (default: as the encoder's folder says)"
    add("--normalize", nargs="?", const=True, type=typed(bool), metavar="false", help=text)
    parser.add_settings(("encoder", "pooling", "max_tokens", "precision", "device"))


def main(args: argparse.Namespace, parser: Parser) -> int:
    from tasks.tables import read_sentences

    if args.run and args.encoder:
        parser.error("--run and --encoder: give only one of them")
    if args.task and not args.run:
        parser.error("--task needs --run RUN, the run that has the task")
    check_output_file("output", args, parser, ".npy")
    config, source = RunConfig(**parser.given(args)), Path(args.input)
    layout = Layout(**layout_keys(args.table))
    sentences = read_sentences(source, args.text, layout)
    if not sentences:
        raise UserError(f"{source}: the file has no sentences")
    from minbert.device import choose_device, warn_if_slow
    from multitask.assembly import open_bi_encoder
    from serving.encode_file import encode_file, encoder_of_run

    device = choose_device(config.device)
    warn_if_slow(config.precision, device)
    if args.run:
        model = encoder_of_run(Path(args.run), config, args.task)
    else:
        model = open_bi_encoder(config.encoder, config).to(device)
    precision, begin = model.choose_precision(config.precision), time.perf_counter()
    with atomic_path(Path(args.output)) as new:
        encode_file(model, sentences, new, precision.precision, args.normalize)
    rate = len(sentences) / (time.perf_counter() - begin)
    if config.precision == "auto":
        print(precision, file=sys.stderr, flush=True)
    print(f"{len(sentences):,} x {model.width}, {rate:,.0f} sentences/s: {args.output}")
    return 0
