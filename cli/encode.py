"""Embed the sentences of a file: python run.py --mode encode --input FILE --output FILE.npy

The output is a numpy array (n, H) of float32, one row a sentence in the file's order, which
`numpy.load(FILE, mmap_mode="r")` opens without reading it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cli.corpus import add_sentence_file, check_output
from cli.settings_flags import Flags, path
from cli.training import MACHINE, VERBOSE
from minbert.errors import UserError
from minbert.files import written_aside
from minbert.front_door import tell
from minbert.sources import find_folder
from multitask.config import RunConfig


def add_flags(parser: Any) -> None:
    files = parser.add_argument_group("files")
    add_sentence_file(files)
    files.add_argument("--output", type=path, required=True, metavar="FILE.npy", help="the array")
    files.add_argument("--overwrite", action="store_true", help="replace an existing output")
    files.add_argument("--verbose", action="store_true", help=VERBOSE)

    parser.flags = flags = Flags(parser)
    flags.add_config(("encoder", "pooling", "precision", *MACHINE))
    files.add_argument(
        "--normalize",
        action=argparse.BooleanOptionalAction,
        help="embeddings of unit length (default: what the encoder's folder says, else not)",
    )
    files.add_argument(
        "--compile",
        action="store_true",
        help="fuse what lies between the matrix products with torch.compile; pays off on much text",
    )


def main(args: argparse.Namespace, parser: Any) -> int:
    from tasks.text_files import read_sentences

    args.config = RunConfig(**parser.flags.given(args, ()))
    source, target = Path(args.input), Path(args.output)
    check_output(args, parser, (".npy",))
    try:
        # A first reading counts the sentences and finds what is wrong with the file at once.
        total = sum(1 for _ in read_sentences(source, args.column))
        if not total:
            raise UserError(f"{source}: expected at least one sentence, found none")
        with written_aside(target) as new:
            shown = encode_file(args, source, total, new)
    except KeyboardInterrupt:
        return tell("run.py", f"interrupted; {target} was not written", 130)
    print(f"{shown}: {target}")
    return 0


def encode_file(args: argparse.Namespace, source: Path, total: int, target: Path) -> str:
    """Write the array of `total` sentences window by window; returns a line that says how fast."""
    import numpy as np

    from tasks.text_files import read_sentences

    config: RunConfig = args.config
    with ThreadPoolExecutor(1) as meanwhile:
        # Checks the weights' hash while PyTorch is loaded.
        meanwhile.submit(find_folder, config.encoder)
        from minbert.bi_encoder import BiEncoder
        from minbert.device import choose_device, warn_if_slow
        from minbert.linear_choice import choose_linear

    device = choose_device(config.device)
    warn_if_slow(config.precision, device)
    choice = choose_linear(config.linear)
    if args.verbose:
        print(f"linear layers on a CPU: {choice.kernel} ({choice.reason})")
    model = BiEncoder.from_pretrained(config.encoder, config.pooling, choice.kernel)
    model.to(device)
    if args.compile:
        compiler = (os.environ.get("CXX") or "g++").split()[0]  # it may come with flags
        if device.type == "cpu" and shutil.which(compiler) is None:
            raise UserError("--compile: expected a C++ compiler such as g++, found none")
        model.encoder.compile_layers()
    array = np.lib.format.open_memmap(target, "w+", np.float32, (total, model.width))
    if hasattr(os, "posix_fallocate"):  # a full disk is an error here, and a crash in the array
        with target.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, target.stat().st_size)
    sentences = read_sentences(source, args.column)
    done, begin = 0, time.perf_counter()
    for window in model.encode_stream(sentences, config.precision, args.normalize, total):
        if done + len(window) > total:
            break
        array[done : done + len(window)] = window
        done += len(window)
    if done != total or next(sentences, None) is not None:
        raise UserError(f"{source}: expected {total} sentences, found the file changed meanwhile")
    array.flush()
    seconds = time.perf_counter() - begin
    return f"{total:,} x {model.width}, {total / seconds:,.0f} sentences/s"
