"""Flags and modes. Choices are plain strings, so that `--help` imports no torch."""

from __future__ import annotations

import argparse
import importlib
import os
import re
from itertools import pairwise
from typing import NoReturn

from minbert.front_door import ended

MODES = {
    "single": "train one task",
    "multitask": "train several tasks on one shared encoder",
    "pretrain": "train the encoder further on sentences, pairs or classes",
    "probe": "fit a logistic regression on a frozen encoder's embeddings",
    "bilstm": "write an untrained BiLSTM encoder over the words of a task",
    "pareto": "train once for each of several preferences between tasks",
    "ensemble": "merge what several finished runs predict",
    "compare": "runs side by side: means over seeds, gains, tests",
    "reproduce": "a paper's tables, from its configurations",
    "evaluate": "check and score leaderboard files, and pack them",
    "runs": "list the runs of a folder",
    "tasks": "list the tasks, and what is read of them",
    "encode": "embed the sentences of a file",
    "predict": "what a run says of new texts",
    "demo": "a local page with a run's heads, to be tried by hand",
    "download": "data from the hub, in the files of CS224N and GLUE",
    "export": "write a run as a folder that other libraries open",
    "mine": "the most similar pairs among the sentences of a file",
    "similar": "the sentences of a file that are nearest to a query",
}
TOGETHER = ("single", "multitask", "pretrain")  # modes in which processes take a step together


class Parser(argparse.ArgumentParser):
    """argparse, with a wrong flag or value answered in one line and exit status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"run.py: {message} (see --help)\n")


def main(argv: list[str]) -> int:
    """Run one mode; 0 when done, 1 for data or folders that cannot be used, 2 for wrong flags."""
    front = Parser(
        prog="run.py",
        usage="python run.py --mode MODE [flags]",
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Train a shared sentence encoder on one task or several.\n\nmodes:\n"
        + "\n".join(f"  --mode {name:<10} {text}" for name, text in MODES.items())
        + "\n\npython run.py --mode MODE --help shows the flags of a mode.",
    )
    front.add_argument("--mode", choices=MODES, help=argparse.SUPPRESS)
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow
        complete(front)
    chosen, rest = front.parse_known_args(argv)
    if chosen.mode is None:
        if {"-h", "--help"} & set(rest):
            front.print_help()
            return 0
        front.error(f"--mode: expected one of {', '.join(MODES)}, found none")
    return ended("run.py", lambda: run_mode(chosen.mode, rest))


def complete(front: Parser) -> None:
    """Answer a shell's Tab (argcomplete): modes, and the flags and choices of the mode typed."""
    import argcomplete

    words = os.environ.get("COMP_LINE", "").split()
    typed = next((b for a, b in pairwise(words) if a == "--mode"), None)
    if typed in MODES:
        importlib.import_module(f"cli.{typed}").add_flags(front)
    argcomplete.autocomplete(front)


def run_mode(name: str, rest: list[str]) -> int:
    """Read the mode's flags and run it; the exit status."""
    mode = importlib.import_module(f"cli.{name}")
    parser = Parser(prog=f"run.py --mode {name}", allow_abbrev=False, description=mode.__doc__)
    mode.add_flags(parser)
    if name not in TOGETHER and os.environ.get("WORLD_SIZE", "1") != "1":
        parser.error(
            f"--mode {name}: expected one process, found {os.environ['WORLD_SIZE']} (torchrun); "
            f"several train together in {', '.join(TOGETHER)}"
        )
    from multitask.errors import SettingsError

    args = parser.parse_args(rest)
    try:
        return int(mode.main(args, parser))
    except SettingsError as error:
        parser.error(flagged(str(error), parser))


def flagged(message: str, parser: argparse.ArgumentParser) -> str:
    """A message about a setting, with the flag of that name where the mode has one."""
    (name,) = re.findall(r"^[a-z_]*", message)
    flag = f"--{name.replace('_', '-')}"
    known = {option for action in parser._actions for option in action.option_strings}
    return flag + message.removeprefix(name) if flag in known else message
