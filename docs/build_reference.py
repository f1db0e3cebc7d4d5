"""Generator of docs/methods.md from the code: python -m docs.build_reference"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from common.settings import (
    Settings,
    choices_of,
    default_of,
    hints_of,
    methods,
    scalars,
    takes,
)
from multitask.settings.methods import ROLES
from multitask.settings.run_settings import RunSettings
from tasks import TASKS, TaskOptions

PAGE = Path(__file__).with_name("methods.md")


def methods_page() -> str:
    """Return the whole page: a section per role, an entry per method with its settings."""
    parts = [
        "# Methods and their settings",
        "Built from the methods' own descriptions by `python -m docs.build_reference`. Each part "
        "of a run is a keyword of `RunConfig` and a key of `config.json`: the name of a method, or "
        "a mapping with `name` and its settings, such as `{name: temperature, temperature: 3}`. "
        "The tables name the flags; `in JSON` is the key if it differs. A setting without a flag "
        "is set in a file (`--config FILE`) or in Python. Where no modes are named, every mode "
        "that trains has the setting.",
    ]
    known = {one.name: one for one in fields(RunSettings)}
    for role, base in ROLES.items():
        default = default_of(known[role])
        name = getattr(
            default, "name", "ce" if role == "objective" else "none: each needs a weight"
        )
        modes = modes_text(known[role])
        of_modes = f" Modes: {modes}." if modes else ""
        parts.append(f"## {role.replace('_', ' ')}\n\nThe default is {name}.{of_modes}")
        parts += [method_entry(method) for method in methods(base).values()]
    plain = {key: one for key, one in known.items() if key not in ROLES}
    parts += ["## every run", "\n".join(settings_table(RunSettings, plain)[1:])]
    parts += ["## tasks", *filter(None, map(task_entry, TASKS.values()))]
    return "\n\n".join([*parts, presets()]) + "\n"


def method_entry(method: type[Settings]) -> str:
    """Return name, description, own defaults of other settings, and settings as Markdown."""
    text = " ".join((method.__doc__ or "").split())
    if defaults := getattr(method, "defaults", {}):
        text += f" Defaults with it: `{json.dumps(defaults)}`."
    own = {method.prefix + one.name: one for one in fields(method)}
    return "\n".join([f"**{method.name}**: {text}", *settings_table(method, own)])


def task_entry(task: type[TaskOptions]) -> str:
    """Return a task's name and its own options; those shared by several tasks are left out."""
    own = {f"{task.name}_{one.name}": one for one in fields(task) if not one.metadata.get("shared")}
    return "\n".join([f"**{task.name}**", *settings_table(task, own)]) if own else ""


def settings_table(owner: type[Settings], settings: Mapping[str, Field[Any]]) -> list[str]:
    """Return the lines of a table of settings by the name of their flag; none without settings."""
    if not settings:
        return []
    hints = hints_of(owner)
    lines = ["", "| setting | a value is | default | |", "|---|---|---|---|"]
    for key, one in settings.items():
        default = default_of(one)
        shown = "" if default in (None, {}, (), "") else f"`{default}`"
        if source := one.metadata.get("source"):
            shown += f" ({source})"
        help = one.metadata.get("help", "").replace("|", "\\|")
        if modes := modes_text(one):
            help += f". Modes: {modes}"
        lines.append(
            f"| {flag_text(key, one)} | {values_text(hints[one.name])} | {shown} | {help} |"
        )
    return lines


def values_text(hint: Any) -> str:
    """Return the values of a type in words."""
    if names := choices_of(hint):
        return ", ".join(names)
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    found = " or ".join(dict.fromkeys(words[one] for one in scalars(hint) if one in words))
    return f"{found}, or one by task" if takes(hint, Mapping) else found


def modes_text(one: Field[Any]) -> str:
    """Return the modes that have a setting; empty for all that train."""
    return ", ".join(one.metadata.get("modes", ()))


def flag_text(key: str, one: Field[Any]) -> str:
    """Return the flag of a setting, or its keyword if it has none, as Markdown."""
    if one.metadata.get("flag") is False:
        return f"`{key}`, without a flag"
    return f"`--{flag_name(key)}`"


def flag_name(key: str) -> str:
    return key.replace("_", "-")


def presets() -> str:
    """Return a heading and the file of the presets."""
    file = (PAGE.parents[1] / "multitask" / "settings" / "presets.toml").read_text("utf-8")
    return "\n\n".join(
        [
            "## presets",
            "Defaults by `--preset NAME`; a setting that is given wins.",
            f"```toml\n{file}```",
        ]
    )


def main() -> None:
    PAGE.write_text(methods_page(), "utf-8")


if __name__ == "__main__":
    main()
