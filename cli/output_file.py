"""Checks of an output file."""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.flags import Parser
from common.errors import UserError


def check_output_file(
    name: str, args: argparse.Namespace, parser: Parser, endings: tuple[str, ...]
) -> None:
    """Check, before any computation, that the file of a flag can be written and replaced."""
    target = Path(getattr(args, name))
    if target.suffix.lower() not in endings:
        shown = " or ".join(endings)
        parser.error(f"--{name}: expected a name that ends in {shown}, found {target.name}")
    if target.exists() and "input" in args and args.input and target.samefile(args.input):
        raise UserError(f"{target}: expected another --{name} than the --input")
    if target.is_dir() or (target.exists() and not args.overwrite):
        line = "found a folder" if target.is_dir() else "found an existing file"
        raise UserError(f"{target}: {line}; --overwrite would replace a file")
    target.parent.mkdir(parents=True, exist_ok=True)
