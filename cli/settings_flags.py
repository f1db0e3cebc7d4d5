"""Flags generated from the settings of the configuration and of methods.

A flag that is not given is None; the configuration then uses its default. An invalid value is kept
as the typed text, so that the configuration reports it with the same message as in Python. PyTorch
is not imported here.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from types import MappingProxyType
from typing import Any, get_origin

from common.argument_types import reader, scalars, takes_names
from common.errors import SettingsError
from common.repeats import repeated
from common.settings import Settings, alternatives, default_of, hints_of, names_of
from multitask.settings.config import RunConfig
from multitask.settings.methods import ROLES, pretrains
from tasks import TASKS, TaskOptions

GROUPS = ("data", "tasks", "mixing", "training", "output")
USE_AGAIN = "files with the user-defined methods that the run was trained with"
Chosen = Mapping[str, Mapping[str, type[Settings]]]  # methods of a mode by role and name


class Flags:
    """The flags of a mode, in groups; without `everything`, help shows only the common ones.

    `defaults` replace the defaults of the settings in this mode, and `role_helps` the help texts of
    roles of methods; `common` are settings that are common in this mode only.
    """

    def __init__(
        self,
        parser: argparse.ArgumentParser,
        everything: bool = True,
        defaults: Mapping[str, Any] = MappingProxyType({}),
        common: Collection[str] = (),
        role_helps: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.parser, self.everything, self.defaults = parser, everything, defaults
        self.common, self.role_helps = common, role_helps
        self.groups = {name: parser.add_argument_group(name) for name in GROUPS}
        self.hints: dict[str, Any] = {}  # types of the settings with a flag
        self.methods: dict[str, list[str]] = {}  # names of the mode's methods by role
        self.tasks: dict[str, type[TaskOptions]] = {}  # tasks with flags for their options

    def add(self, key: str, group: str, help: str, common: bool = False, **more: Any) -> Any:
        """Add a flag to a group; flags that are not common are shown only by --help-all."""
        if group not in self.groups:
            self.groups[group] = self.parser.add_argument_group(group)
        shown = common or key in self.common or self.everything
        text = help.replace("%", "%%") if shown else argparse.SUPPRESS
        try:
            return self.groups[group].add_argument(flag(key), dest=key, help=text, **more)
        except argparse.ArgumentError as error:  # a user-defined method has the same setting
            line = "expected another name for a setting, because the mode has this flag"
            raise SettingsError(f"{key}: {line}") from error

    def add_setting(
        self, key: str, one: Field[Any], hint: Any, group: str, help: str | None = None
    ) -> None:
        """Add the flag of a setting once; several methods may share it."""
        about = one.metadata
        if key in self.hints or about.get("flag") is False:
            return
        self.hints[key] = hint
        more: dict[str, Any] = {"action": "store_true", "default": None}
        if bool not in scalars(hint):
            text_type = path if about.get("path") else reader(hint)
            more = {"type": about.get("of_text", text_type)}
            more["metavar"] = about.get("metavar") or metavar(hint)
            if about.get("several") or (takes_several(hint) and "of_text" not in about):
                more["nargs"] = "+"
        text = help or about.get("help") or f"setting of {group}"
        if key in self.defaults:  # the mode has another default, without the source of that one
            text = re.sub(r" \(default: [^()]*\)", "", text)
            text += default_text(text, self.defaults[key])
        else:
            text += default_text(text, default_of(one), about.get("source"))
        if default_of(one) is True:
            more["action"] = argparse.BooleanOptionalAction
        self.add(key, group, text, about.get("common", False), **more)

    def add_config(self, keys: Iterable[str]) -> None:
        """Add the flags of settings of the configuration."""
        known = {one.name: one for one in fields(RunConfig)}
        for key in keys:
            group = known[key].metadata.get("group", "training")
            self.add_setting(key, known[key], hints_of(RunConfig)[key], group)

    def add_methods(self, chosen: Chosen, without: Sequence[str] = ()) -> None:
        """Add a flag per role, which selects a method, and the flags of the methods' settings."""
        self.methods = {role: list(several) for role, several in chosen.items()}
        known = {one.name: one for one in fields(RunConfig)}
        together = [method for several in chosen.values() for method in several.values()]
        for role, several in chosen.items():
            about = known[role].metadata
            if role != "regularizers":
                optional, fits = None in ROLES[role].methods, any(map(of_tasks, several.values()))
                absent = [ROLES[role].absent] if optional and fits else []
                names = [*absent, *several]
                usual = self.defaults.get(role, names[0])
                default = "" if optional and not absent else f" (default: {usual})"
                self.add_role(role, about, names, default)
            for method in several.values():
                for key, one in method.by_key().items():
                    if key in without:
                        continue
                    owners = {
                        where: [m.name for m in named.values() if key in m.by_key()]
                        for where, named in chosen.items()
                    }
                    everybody = len(owners[role]) == len(several) and role != "regularizers"
                    titles = [f"{where} {', '.join(m)}" for where, m in owners.items() if m]
                    title = about["group"] if everybody else "; ".join(titles)
                    help = shared_help(key, [m for m in together if key in m.by_key()])
                    self.add_setting(key, one, hints_of(method)[one.name], title, help)
            if self.everything:
                lines = [f"{name}: {summary(method)}" for name, method in several.items()]
                self.parser.epilog = "\n".join([self.parser.epilog or "", f"{role}:", *lines])

    def add_role(self, role: str, about: Mapping[str, Any], names: list[str], default: str) -> None:
        self.hints[role] = str
        text = f"{self.role_helps.get(role, about['help'])}: {', '.join(names)}{default}"
        self.add(role, about["group"], text, about.get("common", False), metavar="NAME")

    def add_task_options(self, names: Iterable[str]) -> None:
        """Add the options of tasks, such as `--sst-head`, and those shared by several tasks."""
        self.tasks = {name: TASKS[name] for name in names} | {
            one.name: one
            for one in getattr(self.parser, "outside", ())
            if issubclass(one, TaskOptions)
        }
        for name, task in self.tasks.items():
            for option, one in task.by_key().items():
                key = option if one.metadata.get("shared") else f"{name}_{option}"
                self.add_setting(key, one, hints_of(task)[one.name], "tasks")

    def given(self, args: argparse.Namespace, tasks: Sequence[str]) -> dict[str, Any]:
        """Return the given settings by name, with the options of `tasks` as `task_options`."""
        found = {key: vars(args)[key] for key in self.hints if vars(args).get(key) is not None}
        for key, value in found.items():
            if isinstance(value, list) and takes_names(self.hints[key]):
                found[key] = by_name(key, value, tasks)
        options = task_options(found, tasks, TASKS | self.tasks)
        return found | ({"task_options": options} if options else {})


def of_tasks(method: type[Settings]) -> bool:
    """Return whether a method is not an objective of pre-training."""
    return not pretrains(method)


def flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def summary(method: type[Settings]) -> str:
    """Return the first line of a method's docstring."""
    return (method.__doc__ or "").strip().partition("\n")[0]


def shared_help(key: str, methods: Sequence[type[Settings]]) -> str:
    """Return the help of a setting with its default; what differs is listed by method."""
    by_text: dict[str, list[str]] = {}
    for method in methods:
        one = method.by_key()[key]
        text = one.metadata.get("help", "")
        text += default_text(text, default_of(one), one.metadata.get("source"))
        by_text.setdefault(text, []).append(method.name)
    if len(by_text) == 1:
        return next(iter(by_text))
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in by_text.items())


def default_text(text: str, value: Any, source: str | None = None) -> str:
    """Return a default with its source as the end of a help `text`; empty if it has one there."""
    if value in (None, False, (), {}, MISSING) or "(default" in text:
        return ""
    shown = " ".join(map(str, value)) if isinstance(value, tuple) else value
    return f" (default: {shown}{f', {source}' if source else ''})"


def takes_several(hint: Any) -> bool:
    return takes_names(hint) or any(get_origin(one) is tuple for one in alternatives(hint))


def metavar(hint: Any) -> str:
    if names := names_of(hint):
        return "{" + ",".join(names) + "}"
    kinds = set(scalars(hint))
    return "N" if int in kinds else "X" if float in kinds else "NAME"


def by_name(key: str, given: Sequence[tuple[str, Any]], tasks: Sequence[str]) -> Any:
    """Return one value for all tasks, or values by task: `1`, `sst=1 sts=3`, `1 sts=3`."""
    names = [name for name, _ in given]
    for name in repeated(names):
        raise SettingsError(f"{key}: expected one for {name or 'all tasks'}, found several")
    if names == [""]:
        return given[0][1]
    found = dict(given)
    return ({} if "" not in found else dict.fromkeys(tasks, found.pop(""))) | found


def task_options(
    found: dict[str, Any], tasks: Sequence[str], known: Mapping[str, type[TaskOptions]]
) -> dict[str, dict[str, Any]]:
    """Remove the options of tasks from `found`; return those other than defaults by task."""
    options: dict[str, dict[str, Any]] = {}
    for key in list(found):
        owners = [
            (name, option, one)
            for name, task in known.items()
            for option, one in task.by_key().items()
            if key == (option if one.metadata.get("shared") else f"{name}_{option}")
        ]
        if not owners:
            continue
        value = found.pop(key)
        mine = [owner for owner in owners if owner[0] in tasks]
        every = owners[0][2].metadata.get("shared") == "all"
        if not mine or (every and len(mine) < len(tasks)):
            names = " or ".join(name for name, _, _ in owners)
            raise SettingsError(
                f"{key}: expected {names} among the tasks, found {', '.join(tasks)}"
            )
        for name, option, one in mine:
            if value != default_of(one):
                options.setdefault(name, {})[option] = value
    return options


def path(text: str) -> str:
    """Parse the path of a file or folder and expand `~`."""
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"expected a path, found {text!r}")
    return os.path.expanduser(text)


USE: dict[str, Any] = {"type": path, "nargs": "+", "action": "extend", "metavar": "FILE.py"}
