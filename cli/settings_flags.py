"""Flags made from the settings of a run and of its methods.

A flag that is not given is None, so that the configuration uses its default.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from types import MappingProxyType
from typing import Any

from common.errors import SettingsError
from common.settings import (
    Settings,
    choices_of,
    convert,
    default_of,
    hints_of_fields,
    methods,
    scalars,
    takes,
)
from multitask.settings.from_flags import keys_of
from multitask.settings.methods import ROLES
from multitask.settings.run_settings import RunSettings
from tasks import TASKS, TaskOptions

SETTINGS = {one.name: one for one in fields(RunSettings)}
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

    def add_setting(self, key: str, cls: Any, one: Field[Any], group: str = "training") -> None:
        """Add the flag of a setting once; several methods may share it."""
        about, default, hint = one.metadata, default_of(one), hints_of_fields(cls)[one.name]
        if key in self.keys or about.get("flag") is False:
            return
        self.keys.add(key)
        more: dict[str, Any] = {"action": "store_true"}
        if bool not in scalars(hint):
            more = {"metavar": about.get("metavar") or metavar(hint)}
            if takes(hint, tuple, Mapping):
                more |= {"nargs": "+", "action": "extend"}
        text = about.get("help", "")
        if key in self.defaults:
            text += f" (default: {self.defaults[key]})"
        elif default not in (None, False, (), {}, MISSING) and "(default" not in text:
            shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
            text += f" (default: {', '.join(filter(None, (str(shown), about.get('source'))))})"
        more |= {"default": None, "common": about.get("common", False)}
        self.add(key, about.get("group", group), text, **more)

    def add_settings(self, keys: Iterable[str]) -> None:
        """Add the flags of settings of the run."""
        for key in keys:
            self.add_setting(key, RunSettings, SETTINGS[key])

    def add_methods(self, role: str, fits: Callable[[Any], bool] = lambda one: True) -> None:
        """Add the flag that selects a method of a role, and the flags of the methods' settings."""
        known = {name: one for name, one in methods(ROLES[role]).items() if fits(one)}
        about = SETTINGS[role].metadata
        group = about.get("group", "training")
        if about.get("flag") is not False:
            usual = getattr(default_of(SETTINGS[role]), "name", "ce")
            text = f"{about['help']}: {', '.join(known)} (default: {usual})"
            self.keys.add(role)
            self.add(role, group, text, about.get("common", False), metavar="NAME")
        for method in known.values():
            self.add_fields(method, group)
        if self.everything:
            lines = [f"  {name}: {summary(method)}" for name, method in known.items()]
            self.parser.epilog = "\n".join([self.parser.epilog or "", f"{role}:", *lines])

    def add_task_options(self, names: Iterable[str]) -> None:
        """Add the options of tasks, such as `--sst-head`, and those shared by several tasks."""
        for name, task in methods(TaskOptions).items():
            if name in names or name not in TASKS:
                self.add_fields(task, "tasks")

    def add_fields(self, cls: Any, group: str) -> None:
        """Add the flags of the settings of a method or a task."""
        known = {one.name: one for one in fields(cls)}
        for key, name in keys_of(cls).items():
            self.add_setting(key, cls, known[name], group)

    def given(self, args: argparse.Namespace) -> dict[str, Any]:
        """Return the given settings by the names of their flags."""
        return {key: vars(args)[key] for key in self.keys if vars(args).get(key) is not None}


def flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def summary(method: type[Settings]) -> str:
    """Return the first line of a method's docstring."""
    return (method.__doc__ or "").strip().partition("\n")[0]


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
