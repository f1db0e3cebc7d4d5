"""The flags that give a run the settings with which it began, for `--resume`.

No torch is imported here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from common.settings import default_of
from multitask.config import RunConfig, default_values
from multitask.presets import preset_values

# Settings whose default follows from others.
FOLLOWING = ("batches_per_step", "similarity_scale", "gradients")
ONE_TASK = ("single", "probe")  # modes with --task only


class Flag(NamedTuple):
    """A flag for a setting, and its value as typed; without `value` the flag is to be left out."""

    name: str
    value: str | None
    given: bool  # on the command line of now

    @property
    def text(self) -> str:
        return f"{self.name} {self.value}" if self.value else self.name


def flags_to_repeat(config: RunConfig, began: RunConfig) -> str:
    """Return what to repeat, to change and to leave out in the flags of `config`, in one line.

    With these changes they give the settings of the run, which `began` with others. Empty if there
    is no difference that has a flag.
    """
    found = list(dict.fromkeys(differing_flags(config, began)))
    needed = [one for one in found if one.value is not None]
    parts = {
        "repeat": [one.text for one in needed if not one.given],
        "change to": [one.text for one in needed if one.given],
        "leave out": [one.name for one in found if one.value is None and one.given],
    }
    return "; ".join(f"{what} {' '.join(flags)}" for what, flags in parts.items() if flags)


def differing_flags(config: RunConfig, began: RunConfig) -> Iterator[Flag]:
    """Yield a flag for each setting that differs, with the value with which the run began."""
    here, there = ({**default_values(), **one.to_json()} for one in (config, began))
    differs = [key for key in {**there, **here} if here.get(key) != there.get(key)]
    preset = preset_values(there["preset"], there["mode"]) if "preset" in differs else {}
    explained = [key for key in differs if key in preset and preset[key] == there[key]]
    for key in differs:
        given = key in config.given
        if key in explained or (key == "preset" and not explained):
            continue
        if key == "tasks":
            yield from task_flags(began)
        elif key == "own_tasks":
            if "tasks" not in differs:
                yield from task_flags(began)
        elif key == "task_options":
            yield from option_flags(config, began)
        elif key == "use":
            names = [
                Path(name).name for name in here.get(key, ()) if name not in there.get(key, ())
            ]
            yield Flag(f"--use {' '.join(names)}", None, True)
        elif key in ("drop_leaks", "leaks_of"):
            if key == "drop_leaks" or "drop_leaks" not in differs:
                value = "" if there["leaks_of"] == "all" else there["leaks_of"]
                yield Flag("--drop-leaks", value if there["drop_leaks"] else None, given)
        elif key in ("text_column", "other_column"):
            if key == "text_column" or "text_column" not in differs:
                columns = [there[one] for one in ("text_column", "other_column")]
                yield Flag("--text-column", typed_value(columns, ()), given)
        elif key not in FOLLOWING or key in began.given:
            yield flag_of(key, there[key], given, began.tasks)
        else:
            yield Flag(flag(key), None, given)


def flag_of(key: str, value: Any, given: bool, tasks: tuple[str, ...]) -> Flag:
    """Return the flag of a setting with one value."""
    if value is False and default_values().get(key) is True:
        return Flag(f"--no-{flag(key)[2:]}", "", given)
    return Flag(flag(key), typed_value(value, tasks), given)


def typed_value(value: Any, tasks: tuple[str, ...]) -> str | None:
    """Return a value as typed after its flag; None if the flag is to be left out."""
    if value is True:
        return ""
    if isinstance(value, Mapping):
        several = list(value.values())
        if value.keys() == set(tasks) and several and several.count(several[0]) == len(several):
            return str(several[0])
        value = [f"{name}={one}" for name, one in value.items()]
    if isinstance(value, list | tuple):
        return " ".join(shlex.quote(str(one)) for one in value if one is not None) or None
    return None if value is None or value is False else shlex.quote(str(value))


def task_flags(began: RunConfig) -> Iterator[Flag]:
    """Yield the flags of the tasks of a run; of its own tasks with their file."""
    named = [name for name in began.tasks if name not in began.own_tasks]
    if named:
        yield Flag("--task" if began.mode in ONE_TASK else "--tasks", " ".join(named), False)
    for name, described in began.own_tasks.items():
        file = f"{name}={described['train']}"
        yield Flag("--task", f"{shlex.quote(file)}:...", False)


def option_flags(config: RunConfig, began: RunConfig) -> Iterator[Flag]:
    """Yield the flags of the options of tasks that differ."""
    for task in dict.fromkeys((*began.task_options, *config.task_options)):
        here, there = (one.task_options.get(task, {}) for one in (config, began))
        for option in dict.fromkeys((*there, *here)):
            known = {**began.task_classes, **config.task_classes}[task].by_key()
            if here.get(option) == there.get(option):
                continue
            shared = known[option].metadata.get("shared")
            name = flag(option if shared else f"{task}_{option}")
            default = default_of(known[option])
            yield Flag(
                name, typed_value(there.get(option), ()), here.get(option, default) != default
            )


def flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"
