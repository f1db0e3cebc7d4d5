"""Flags made from the settings of a run and of its methods.

A flag that is not given is None, so that the configuration uses its default. A value of the wrong
kind is kept as text, so that the configuration reports it as in Python.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin

from common.errors import SettingsError
from common.settings import (
    Settings,
    alternatives,
    choices_of,
    convert,
    default_of,
    hints_of,
    hints_of_fields,
    methods,
)
from multitask.settings.from_flags import option_key, takes_names
from multitask.settings.methods import ROLES
from multitask.settings.run_settings import RunSettings
from tasks import TASKS, TaskOptions

GROUPS = ("data", "tasks", "mixing", "training", "output")
USE_AGAIN = "files with the user-defined methods that the run was trained with"
USE: dict[str, Any] = {"nargs": "+", "action": "extend", "metavar": "FILE.py"}


class Flags:
    """The flags of a mode, in groups; without `everything`, help shows only the common ones.

    `defaults` are texts about other defaults in this mode; `common` are settings that are common in
    this mode only.
    """

    def __init__(
        self,
        parser: argparse.ArgumentParser,
        everything: bool = True,
        defaults: Mapping[str, str] = MappingProxyType({}),
        common: Collection[str] = (),
    ) -> None:
        self.parser, self.everything, self.defaults = parser, everything, defaults
        self.common = common
        self.groups = {name: parser.add_argument_group(name) for name in GROUPS}
        self.keys: set[str] = set()  # flags of settings

    def add(self, key: str, group: str, help: str, common: bool = False, **more: Any) -> Any:
        """Add a flag to a group; flags that are not common are shown only by --help-all."""
        shown = common or key in self.common or self.everything
        text = help.replace("%", "%%") if shown else argparse.SUPPRESS
        return self.groups[group].add_argument(flag(key), dest=key, help=text, **more)

    def add_setting(self, key: str, one: Field[Any], hint: Any, group: str) -> None:
        """Add the flag of a setting once; several methods may share it."""
        about = one.metadata
        if key in self.keys or about.get("flag") is False:
            return
        self.keys.add(key)
        more: dict[str, Any] = {"action": "store_true"}
        if bool not in scalars(hint):
            more = {"type": about.get("of_text", path if about.get("path") else reader(hint))}
            more["metavar"] = about.get("metavar") or metavar(hint)
            if takes_several(hint) and "of_text" not in about:
                more |= {"nargs": "+", "action": "extend"}
        if default_of(one) is True:
            more["action"] = argparse.BooleanOptionalAction
        usual = self.defaults.get(key)  # its source is another one
        text = about.get("help", "")
        text += f" (default: {usual})" if usual else default_text(default_of(one), about)
        self.add(key, group, text, about.get("common", False), default=None, **more)

    def add_settings(self, keys: Iterable[str]) -> None:
        """Add the flags of settings of the run."""
        known = {one.name: one for one in fields(RunSettings)}
        for key in keys:
            group = known[key].metadata.get("group", "training")
            self.add_setting(key, known[key], hints_of_fields(RunSettings)[key], group)

    def add_methods(self, role: str, fits: Callable[[Any], bool] = lambda one: True) -> None:
        """Add the flag that selects a method of a role, and the flags of the methods' settings."""
        known = {name: one for name, one in methods(ROLES[role]).items() if fits(one)}
        if role != "regularizers":
            field = next(one for one in fields(RunSettings) if one.name == role)
            about, default = field.metadata, default_of(field)
            usual = f" (default: {'ce' if default is None else default.name})"
            text = f"{about['help']}: {', '.join(known)}{usual}"
            self.keys.add(role)
            self.add(role, about["group"], text, about.get("common", False), metavar="NAME")
        for method in known.values():
            self.add_fields(method, about["group"] if role != "regularizers" else "training")
        if self.everything:
            lines = [f"  {name}: {summary(method)}" for name, method in known.items()]
            self.parser.epilog = "\n".join([self.parser.epilog or "", f"{role}:", *lines])

    def add_fields(self, method: type[Settings], group: str) -> None:
        hints = hints_of_fields(method)
        for one in fields(method):
            self.add_setting(method.prefix + one.name, one, hints[one.name], group)

    def add_task_options(self, names: Iterable[str]) -> None:
        """Add the options of tasks, such as `--sst-head`, and those shared by several tasks."""
        own = {name: one for name, one in methods(TaskOptions).items() if name not in TASKS}
        for name, task in ({name: TASKS[name] for name in names} | own).items():
            for one in fields(task):
                hint = hints_of(task)[one.name]
                self.add_setting(option_key(name, one), one, hint, "tasks")

    def given(self, args: argparse.Namespace) -> dict[str, Any]:
        """Return the given settings by the names of their flags."""
        return {key: vars(args)[key] for key in self.keys if vars(args).get(key) is not None}


def flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def summary(method: type[Settings]) -> str:
    """Return the first line of a method's docstring."""
    return (method.__doc__ or "").strip().partition("\n")[0]


def default_text(value: Any, about: Mapping[str, Any]) -> str:
    """Return a default with its source as the end of a help text; empty if it is there already."""
    if value in (None, False, (), {}, MISSING) or "(default" in about.get("help", ""):
        return ""
    shown = " ".join(map(str, value)) if isinstance(value, tuple) else value
    source = f", {about['source']}" if about.get("source") else ""
    return f" (default: {shown}{source})"


def reader(hint: Any) -> Callable[[str], Any]:
    """Return a function that parses the text of a flag: a number, or a name and a number."""
    kinds = (int, float) if {int, float} & set(scalars(hint)) else ()

    def number(text: str) -> Any:
        for kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
        return text

    def pair(text: str) -> tuple[str, Any]:
        name, _, value = text.rpartition("=")
        return name, number(value)

    return pair if takes_names(hint) else number


def typed(hint: Any) -> Callable[[str], Any]:
    """Return the parser of an argument that is not a setting."""

    def parse(text: str) -> Any:
        try:
            return convert("expected", hint, reader(hint)(text))
        except SettingsError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parse


def scalars(hint: Any) -> set[Any]:
    """Return the scalar types in a type; for values by name, the types of the values."""
    found: set[Any] = set()
    for one in alternatives(hint):
        if get_origin(one) is Annotated or get_origin(one) is tuple:
            found |= scalars(get_args(one)[0])
        elif takes_names(one):
            found |= scalars(get_args(one)[1])
        else:
            found.add(one)
    return found


def takes_several(hint: Any) -> bool:
    return takes_names(hint) or any(get_origin(one) is tuple for one in alternatives(hint))


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
