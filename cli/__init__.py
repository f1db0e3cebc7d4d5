"""The command line: `main` runs one mode."""

import argparse
import importlib
import sys
from typing import Any

from cli.flags import ALL, USE, Parser
from common import __version__
from common.entry_point import run_and_report, start
from common.errors import SettingsError, all_names, suggestion
from multitask.settings.methods import load_methods
from multitask.settings.run_settings import TRAINING_MODES

# The modes by group; each has its flags and `main` in a module of its name.
GROUPS = {
    "begin with": {
        "single": "train one task",
        "multitask": "train several tasks on one shared encoder",
        "compare": "compare runs: means over seeds, and differences with intervals",
        "predict": "predict new texts with a run",
        "encode": "embed the sentences of a file",
        "export": "export a run to a folder for other libraries",
    },
    "more": {
        "pretrain": "train the encoder further on sentences, pairs or classes",
        "probe": "fit a logistic regression on a frozen encoder's embeddings",
        "ensemble": "merge the predictions of several finished runs",
        "serve": "serve the predictions of a run, as a web page and as JSON",
        "evaluate": "check and score leaderboard files, and pack them",
        "runs": "list the runs of a folder",
        "reproduce": "reproduce the tables of a paper",
        "tasks": "list the tasks, or the columns and tasks of your own file",
        "download": "download data sets, in the formats of CS224N and GLUE",
    },
}
MODES = [name for modes in GROUPS.values() for name in modes]


def start_program() -> None:
    """Run the command line and exit the process."""
    start(lambda: main(sys.argv[1:]))


def main(argv: list[str]) -> int:
    """Run one mode; return 0 for success, 1 for unusable data or folders, 2 for wrong flags."""
    return run_and_report(lambda: choose_mode(argv))


def choose_mode(argv: list[str]) -> int:
    """Run the mode of `--mode`, or print the help without one."""
    lines = ["Train a shared sentence encoder on one task or several."]
    for group, modes in GROUPS.items():
        lines += ["", f"{group}:", *(f"  --mode {name:<10} {text}" for name, text in modes.items())]
    lines += ["", "--mode MODE --help shows the flags of a mode."]
    front = Parser("MODE", add_help=False, description="\n".join(lines))
    front.add_argument("--mode", nargs="?", help=argparse.SUPPRESS)  # without one before --help
    version = f"minbert-multitask {__version__}"
    front.add_argument("--version", action="version", version=version, help=argparse.SUPPRESS)
    chosen, rest = front.parse_known_args(argv)
    if chosen.mode in MODES:
        return run_mode(chosen.mode, rest)
    if chosen.mode is None and (not rest or {"-h", "--help", ALL} & set(rest)):
        front.print_help()
        return 0
    word = chosen.mode or (rest[0] if rest else "''")
    front.error(f"no mode {word}: write --mode {all_names(MODES, 'or')}{suggestion(word, MODES)}")


def module_of(mode: str) -> Any:
    """Return the module with the flags and the `main` of a mode."""
    name = "training" if mode in TRAINING_MODES else mode
    return importlib.import_module(f"{__name__}.{name}")


def run_mode(name: str, rest: list[str]) -> int:
    """Parse the flags of a mode and run it; return the exit status."""
    mode, used = module_of(name), Parser(add_help=False)
    parser = Parser(name, ALL in rest, description=mode.__doc__)
    used.add_argument("--use", default=[], **USE)
    try:
        for file in used.parse_known_args(rest)[0].use:  # their settings are flags, too
            load_methods(file)
        mode.add_flags(parser)
        parser.add_argument(ALL, action="help", help="show every flag")
        return int(mode.main(parser.parse_args(rest), parser))
    except SettingsError as error:
        message = str(error)
        name = message.partition(" ")[0].rstrip(":")  # a setting, which may have a flag
        flag = f"--{name.replace('_', '-')}"
        known = flag in parser._option_string_actions
        parser.error(message.replace(name, flag, 1) if known else message)
