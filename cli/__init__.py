"""The modes of the command line. PyTorch is not imported here, so that `--help` is fast."""

from __future__ import annotations

import argparse
import importlib
import os
import re
from contextlib import suppress
from typing import Any, NoReturn

from cli.modes import DISTRIBUTED, GROUPS, MODES
from common.entry_point import CHECKOUT, program, run_and_report
from common.errors import SettingsError, one_line
from common.processes import several_processes
from common.settings import Settings
from common.suggestions import suggestion
from common.text import any_of, first_names

ALL = "--help-all"


class StoreOnce(argparse._StoreAction):
    """Store a value; a list that is given twice ends the program: its first part would be lost."""

    filled: argparse.Namespace | None = None

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        if self.filled is namespace and (self.nargs in ("+", "*") or self.dest == "task"):
            values_after = ", with all of its values after it" if self.nargs else ""
            parser.error(f"{option}: expected once{values_after}, found twice")
        self.filled = namespace
        super().__call__(parser, namespace, values, option)


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong flag or value in one line and exits with status 2.

    With `everything`, help shows all flags; `outside` are user-defined methods.
    """

    everything = True
    outside: tuple[type[Settings], ...] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name in (None, "store"):
            self.register("action", name, StoreOnce)

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: --?([\w-]+)", message)
        if unknown:
            name = unknown[1]
            known = [flag.lstrip("-") for flag in self._option_string_actions]
            near = suggestion(name, known).replace("mean ", "mean --")
            same = {name, f"{name}s", name.removesuffix("s")} & {*known}
            message += near if same else of_other_modes(f"--{name}", self.outside) or near
        elif wrong := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
            message += suggestion(wrong[1], [one.strip("'") for one in wrong[2].split(", ")])
        self.exit(2, f"{program()}: {one_line(message)} (see --help)\n")


def of_other_modes(flag: str, outside: tuple[type[Settings], ...]) -> str:
    """Return the end of a message with the modes that have a flag; empty if none has it."""
    modes = []
    for name in MODES:
        parser = parser_of(name, outside=outside)
        with suppress(SettingsError):  # a user's setting has the name of a flag of this mode
            add_flags(name, parser)
        if flag in parser._option_string_actions:
            modes.append(name)
    if not modes:
        return ""
    return f"; a flag of mode {first_names(modes, 4) if len(modes) > 4 else any_of(modes)}"


def main(argv: list[str]) -> int:
    """Run one mode; return 0 for success, 1 for unusable data or folders, 2 for wrong flags."""
    front = Parser(
        prog=program(),
        usage=f"{shown_command()} --mode MODE [flags]",
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Train a shared sentence encoder on one task or several.\n\n"
        + "\n\n".join(f"{group}:\n{mode_lines(group)}" for group in GROUPS)
        + f"\n\n{shown_command()} --mode MODE --help shows the flags of a mode.",
    )
    front.add_argument("--mode", nargs="?", help=argparse.SUPPRESS)  # none before --help
    chosen, rest = front.parse_known_args(argv)
    if chosen.mode is None:
        if {"-h", "--help", ALL} & set(rest):
            front.print_help()
            return 0
        front.error(f"--mode: expected one of {', '.join(MODES)}, found none")
    if chosen.mode not in MODES:
        line = f"--mode: expected one of {', '.join(MODES)}, found {chosen.mode!r}"
        front.error(line + suggestion(chosen.mode, MODES))
    return run_and_report(program(), lambda: run_mode(chosen.mode, rest))


def mode_lines(group: str) -> str:
    """Return the lines of `--help` about the modes of a group."""
    modes = {name: one for name, one in MODES.items() if one.group == group}
    return "\n".join(f"  --mode {name:<10} {one.help}" for name, one in modes.items())


def shown_command() -> str:
    """Return `python run.py`, or `minbert` where it is installed."""
    return f"python {CHECKOUT}" if program() == CHECKOUT else program()


def run_mode(name: str, rest: list[str]) -> int:
    """Parse the flags of a mode and run it; return the exit status."""
    mode = importlib.import_module(f"cli.{name}")
    parser = parser_of(name, ALL in rest, outside=load_user_methods(name, rest))
    try:
        add_flags(name, parser)
        if name not in DISTRIBUTED and several_processes():
            parser.error(
                f"--mode {name}: expected one process, found {os.environ['WORLD_SIZE']} "
                f"(torchrun); several processes train in {', '.join(DISTRIBUTED)}"
            )
        return int(mode.main(parser.parse_args(rest), parser))
    except SettingsError as error:
        if error.printed_elsewhere:
            raise
        parser.error(with_flag_names(str(error), parser))


def parser_of(name: str, everything: bool = True, *, outside: tuple[type[Settings], ...]) -> Parser:
    """Return the parser of a mode without its flags, of which help shows `everything` or few."""
    parser = Parser(
        prog=f"{program()} --mode {name}",
        usage=f"{shown_command()} --mode {name} [flags]",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=importlib.import_module(f"cli.{name}").__doc__,
    )
    parser.everything, parser.outside = everything, outside
    return parser


def add_flags(name: str, parser: Parser) -> None:
    """Add the flags of a mode to its parser."""
    importlib.import_module(f"cli.{name}").add_flags(parser)
    for action in parser._actions:
        if action.required and action.help and "(required" not in action.help:
            action.help += " (required)"
    parser.add_argument(ALL, action="help", help="show every flag")


def load_user_methods(name: str, rest: list[str]) -> tuple[type[Settings], ...]:
    """Load the methods in the files of `--use`, if the mode supports it."""
    if not MODES[name].user_methods or not any(word.partition("=")[0] == "--use" for word in rest):
        return ()
    from cli.settings_flags import USE

    parser = Parser(prog=f"{program()} --mode {name}", add_help=False, allow_abbrev=False)
    parser.add_argument("--use", **USE)
    files = parser.parse_known_args(rest)[0].use
    from multitask.settings.user_methods import load_methods

    return tuple(method for file in files for method in load_methods(file))


def with_flag_names(message: str, parser: argparse.ArgumentParser) -> str:
    """Replace the names of settings in a message by their flags, if the mode has them.

    After "expected", a name of one word is replaced only behind the word "setting", as in `expected
    setting init`: other words may be plain English.
    """
    known = {option for action in parser._actions for option in action.option_strings}

    def as_flag(found: re.Match[str]) -> str:
        flag = f"--{found[2].replace('_', '-')}"
        return found[1].removeprefix("setting ") + flag if flag in known else found[0]

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
    expected, found, value = rest.partition(", found ")
    expected = re.sub(r"(\bsetting )([a-z_]+)\b", as_flag, expected)
    expected = re.sub(r"()\b([a-z]+(?:_[a-z]+)+)\b", as_flag, expected)
    return re.sub(r"(^|\band )([a-z][a-z_]*)", as_flag, head) + colon + expected + found + value
