"""Flags of a mode, most of them made from the settings of a run and of its methods.

A flag that is not given is None, so that the configuration uses its default.
"""

import argparse
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any, NoReturn

from common.entry_point import print_line, program
from common.errors import SettingsError, UserError, suggestion
from common.progress import is_main_process
from common.settings import choices_of, convert, default_of, hints_of, methods, scalars, takes
from multitask.settings.from_flags import RUN, Place, places
from multitask.settings.methods import ROLES

GROUPS = ("data", "tasks", "mixing", "training", "output")
SEVERAL: dict[str, Any] = {"nargs": "+", "action": "extend"}
USE: dict[str, Any] = {**SEVERAL, "metavar": "FILE"}
USE_AGAIN: dict[str, Any] = {**USE, "help": "files with your own methods, as in training"}
HOW = "how the file is written: quotes=no, header=no, delimiter=, encoding= (default: recognised)"
LAYOUT: dict[str, Any] = {**SEVERAL, "metavar": "KEY=VALUE", "default": [], "help": HOW}
ALL = "--help-all"


class Parser(argparse.ArgumentParser):
    """The parser of a mode, which reports a wrong flag or value in one line and status 2.

    With `everything`, help shows all flags with their complete texts, in groups; without, it shows
    the common ones, with the beginning of their texts.
    """

    def __init__(self, mode: str = "", everything: bool = True, **options: Any) -> None:
        super().__init__(
            usage=f"{shlex.join(program())} --mode {mode} [flags]",
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, 2, 30),
            **options,
        )
        self.mode, self.everything = mode, everything
        several = {name: self.add_argument_group(name) for name in GROUPS if everything}
        self.groups = several or dict.fromkeys(GROUPS, self.add_argument_group("common flags"))
        self.keys: list[str] = []  # flags of settings

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message:
            message += suggestion(unknown.split(" ")[0], self._option_string_actions)
        if is_main_process():
            print_line(f"{message} (see --help)")
        self.exit(2)

    def add(self, key: str, group: str, help: str, common: bool = True, **more: Any) -> None:
        """Add a flag to a group; flags that are not common are shown only by --help-all."""
        text = help if self.everything else help.partition("; ")[0].partition(" (")[0]
        text = text.replace("%", "%%") if common or self.everything else argparse.SUPPRESS
        name = f"--{key.replace('_', '-')}"
        self.groups[group].add_argument(name, help=text, **{"dest": key, **more})

    def has(self, method: Any) -> bool:
        """Return whether the mode has a method: an objective of pre-training, or of tasks."""
        return getattr(method, "pretrains", self.mode == "pretrain") == (self.mode == "pretrain")

    def add_settings(self, keys: Iterable[str]) -> None:
        """Add the flags of settings of the run, with those of the methods of a role or of tasks."""
        wanted = set(keys)
        for key, several in places().items():
            for place in several:
                if (place.part or key) in wanted and self.has(place.cls) and key not in self.keys:
                    self.add_setting(key, place)

    def add_setting(self, key: str, place: Place) -> None:
        """Add the flag of a setting."""
        about, default = place.field.metadata, default_of(place.field)
        hint = hints_of(place.cls)[place.field.name]
        if about.get("flag") is False:
            return
        self.keys.append(key)
        text = about.get("help", "")
        if key in ROLES:
            known = [one for one in methods(ROLES[key]).values() if self.has(one)]
            text += f": {', '.join(one.name for one in known)}"
            default = getattr(default, "name", "ce")
            if self.everything:
                firsts = [(one.name, (one.__doc__ or "").partition("\n")[0]) for one in known]
                lines = [f"  {name}: {first}" for name, first in firsts]
                self.epilog = "\n".join([self.epilog or "", f"{key}:", *lines])
        more: dict[str, Any] = {"action": "store_true"}
        if bool not in scalars(hint):
            more = {"metavar": about.get("metavar") or metavar(hint)}
            more |= SEVERAL if takes(hint, tuple, Mapping) else {}
        if default not in (None, False, (), {}, MISSING) and "(default" not in text:
            text += f" (default: {', '.join(filter(None, (str(default), about.get('source'))))})"
        group = RUN.get(place.part, place.field).metadata.get("group", "training")
        self.add(key, group, text, about.get("common", False), default=None, **more)

    def given(self, args: argparse.Namespace) -> dict[str, Any]:
        """Return the given settings by the names of their flags."""
        return {key: vars(args)[key] for key in self.keys if vars(args).get(key) is not None}


def add_run(parser: Parser) -> None:
    """Add the flags of a mode that uses the heads of a run."""
    text = "folder of a run or of an export (required)"
    parser.add_argument("--run", type=path, required=True, metavar="RUN", help=text)
    parser.add_argument("--use", **USE_AGAIN)


def typed(hint: Any) -> Callable[[str], Any]:
    """Return the parser of a flag that is no setting."""

    def value(text: str) -> Any:
        try:
            return convert("expected", hint, text)
        except SettingsError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix("expected: ")) from error

    return value


def metavar(hint: Any) -> str:
    if names := choices_of(hint):
        return "{" + ",".join(names) + "}"
    kinds = scalars(hint)
    return "N" if int in kinds else "X" if float in kinds else "NAME"


def path(text: str) -> str:
    """Parse the path of a file or folder and expand `~`."""
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"expected a path, found {text!r}")
    return os.path.expanduser(text)


def check_output_file(name: str, args: argparse.Namespace, parser: Parser, *endings: str) -> None:
    """Check, before any computation, that the file of a flag can be written and replaced."""
    target = Path(getattr(args, name))
    if target.suffix.lower() not in endings:
        line = f"the name must end in {' or '.join(endings)}, found {target.name}"
        parser.error(f"--{name}: {line}")
    if target.is_dir() or (target.exists() and not args.overwrite):
        raise UserError(f"{target} exists; choose another name, or add --overwrite for a file")
    target.parent.mkdir(parents=True, exist_ok=True)
