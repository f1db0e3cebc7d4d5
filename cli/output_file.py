"""Checks of the file of `--output`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from cli.flags import Parser
from common.errors import UserError


def check_output_file(args: argparse.Namespace, parser: Parser, endings: tuple[str, ...]) -> None:
    """Check, before any computation, that --output can be written and may be replaced."""
    target = Path(args.output)
    if target.suffix.lower() not in endings:
        shown = " or ".join(endings)
        parser.error(f"--output: expected a name that ends in {shown}, found {target.name}")
    if target.is_dir():
        raise UserError(f"{target}: expected a file or nothing, found a folder")
    both = bool(args.input) and target.exists() and Path(args.input).exists()
    if both and target.samefile(args.input):
        raise UserError(f"{target}: expected another --output than the --input")
    if target.exists() and not args.overwrite:
        raise UserError(f"{target}: found an existing file; --overwrite would replace it")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(target.parent, os.W_OK):
        raise UserError(f"{target.parent}: cannot be written; choose another --output")
