"""Modes, and how their flags are read. No torch is imported here, so that `--help` is quick."""

from __future__ import annotations

import argparse
import importlib
import os
import re
from itertools import pairwise
from typing import NoReturn

from common.entry_point import ended
from common.errors import SettingsError, one_line
from common.settings import Settings, meant

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
    "predict": "predict new texts with a run",
    "demo": "a local page with a run's heads, to be tried by hand",
    "download": "data from the hub, in the files of CS224N and GLUE",
    "export": "write a run as a folder that other libraries open",
    "mine": "the most similar pairs among the sentences of a file",
    "similar": "the sentences of a file that are nearest to a query",
}
TRAINING = ("single", "multitask", "pretrain", "pareto", "probe", "bilstm")
WITH_METHODS = (*TRAINING, "predict", "demo", "export")  # modes with --use
TOGETHER = ("single", "multitask", "pretrain")  # modes in which processes take a step together
ALL = "--help-all"


class Parser(argparse.ArgumentParser):
    """argparse, with a wrong flag or value answered in one line and exit status 2.

    `everything` says that help shows all flags; `outside` are methods from a file of the user.
    """

    everything = True
    outside: tuple[type[Settings], ...] = ()

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: --?([\w-]+)", message)
        if unknown:
            known = [flag.lstrip("-") for flag in self._option_string_actions]
            message += meant(unknown[1], known).replace("mean ", "mean --")
        self.exit(2, f"run.py: {one_line(message)} (see --help)\n")


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
    front.add_argument("--mode", help=argparse.SUPPRESS).completer = lambda **_: MODES  # type: ignore
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow
        complete(front)
    chosen, rest = front.parse_known_args(argv)
    if chosen.mode is None:
        if {"-h", "--help", ALL} & set(rest):
            front.print_help()
            return 0
        front.error(f"--mode: expected one of {', '.join(MODES)}, found none")
    if chosen.mode not in MODES:
        line = f"--mode: expected one of {', '.join(MODES)}, found {chosen.mode!r}"
        front.error(line + meant(chosen.mode, MODES))
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
    parser = Parser(
        prog=f"run.py --mode {name}",
        usage=f"python run.py --mode {name} [flags]",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=mode.__doc__,
    )
    parser.everything = ALL in rest
    parser.outside = used(name, rest)
    try:
        mode.add_flags(parser)
        parser.add_argument(ALL, action="help", help="show every flag")
        if name not in TOGETHER and os.environ.get("WORLD_SIZE", "1") != "1":
            parser.error(
                f"--mode {name}: expected one process, found {os.environ['WORLD_SIZE']} "
                f"(torchrun); several train together in {', '.join(TOGETHER)}"
            )
        return int(mode.main(parser.parse_args(rest), parser))
    except SettingsError as error:
        parser.error(flagged(str(error), parser))


def used(name: str, rest: list[str]) -> tuple[type[Settings], ...]:
    """The methods of the files that `--use` names, in a mode that takes some."""
    files = [after for flag, after in pairwise(rest) if flag == "--use"]
    files += [word.partition("=")[2] for word in rest if word.startswith("--use=")]
    if not files or name not in WITH_METHODS:
        return ()
    from multitask.user_methods import load_methods

    return tuple(method for file in files for method in load_methods(file))


def flagged(message: str, parser: argparse.ArgumentParser) -> str:
    """A message about settings, with their flags where the mode has them."""
    known = {option for action in parser._actions for option in action.option_strings}

    def as_flag(found: re.Match[str]) -> str:
        flag = f"--{found[2].replace('_', '-')}"
        return found[1] + (flag if flag in known else found[2])

    if option := re.match(r"task_options: ([\w-]+): ([a-z_]+)\b", message):
        name = option[2].replace("_", "-")
        for own in (f"--{option[1]}-{name}", f"--{name}"):
            if own in known:
                return own + message[option.end() :]
    if "drop_leaks" not in message:
        message = message.replace("leaks_of:", "drop_leaks:", 1)
    head, colon, rest = message.partition(":")
    if not colon:
        return head
    asked, found, value = rest.partition(", found ")
    asked = re.sub(r"()\b([a-z]+(?:_[a-z]+)+)\b", as_flag, asked)
    return re.sub(r"(^|\band )([a-z][a-z_]*)", as_flag, head) + colon + asked + found + value
