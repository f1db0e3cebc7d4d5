"""Flags and modes. Choices are plain strings, so that `--help` imports no torch."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import NoReturn

MODES = {
    "single": "train one task",
    "multitask": "train several tasks on one shared encoder",
}


class Parser(argparse.ArgumentParser):
    """argparse, with a wrong flag or value answered in one line and exit status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"run.py: {message} (see --help)\n")


def main(argv: list[str]) -> int:
    """Run one mode; 0 when done, 1 for data or folders that cannot be used, 2 for wrong flags."""
    front = Parser(
        prog="run.py",
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Train a shared sentence encoder on one task or several.\n\nmodes:\n"
        + "\n".join(f"  --mode {name:<10} {text}" for name, text in MODES.items())
        + "\n\npython run.py --mode MODE --help shows the flags of a mode.",
    )
    front.add_argument("--mode", choices=MODES, help=argparse.SUPPRESS)
    chosen, rest = front.parse_known_args(argv)
    if chosen.mode is None:
        if {"-h", "--help"} & set(rest):
            front.print_help()
            return 0
        front.error(f"--mode: expected one of {', '.join(MODES)}, found none")
    mode = importlib.import_module(f"cli.{chosen.mode}")
    parser = Parser(
        prog=f"run.py --mode {chosen.mode}",
        allow_abbrev=False,
        description=mode.__doc__,
    )
    mode.add_flags(parser)
    show_defaults(parser)
    args = parser.parse_args(rest)
    try:
        return int(mode.main(args, parser))
    except user_errors() as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2 if isinstance(error, wrong_values()) else 1
    except KeyboardInterrupt:
        print(
            "run.py: interrupted; --resume goes on after the last finished epoch", file=sys.stderr
        )
        return 130


def wrong_values() -> tuple[type[Exception], ...]:
    """Those of the user's errors that are a wrong value of a flag."""
    from minbert.errors import UnknownEncoderError
    from multitask.run_folder import UnknownDeviceError

    return UnknownEncoderError, UnknownDeviceError


def show_defaults(parser: argparse.ArgumentParser) -> None:
    """Add "(default: X)" to the help of flags that have one worth showing."""
    for action in parser._actions:
        if action.default not in (None, False, argparse.SUPPRESS):
            default = action.default
            shown = " ".join(default) if isinstance(default, list) else default
            action.help = f"{action.help} (default: {shown})"


def user_errors() -> tuple[type[Exception], ...]:
    """Faults of data, encoders and folders that are told in one line instead of a traceback."""
    from minbert.errors import EncoderError
    from multitask.checkpoint import CheckpointError
    from multitask.run_folder import RunError
    from tasks.readers import DataError

    return EncoderError, DataError, RunError, CheckpointError
