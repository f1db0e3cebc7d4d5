"""Generator of docs/methods.md from the code: python -m docs.build_reference"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from pathlib import Path
from typing import Any

from common.settings import Settings, default_of, expected, hints_of
from multitask.settings.methods import ROLES, methods
from multitask.settings.presets import PRESETS
from multitask.settings.run_settings import RunSettings
from tasks import TASKS, TaskOptions

PAGE = Path(__file__).with_name("methods.md")


def methods_page() -> str:
    """Return the whole page: a section per role, an entry per method with its settings."""
    parts = [
        "# Methods and their settings",
        "Built from the methods' own descriptions by `python -m docs.build_reference`. Every "
        "setting is a keyword of `RunConfig` and a key of `config.json`, and nearly every one a "
        "flag, under the same name; options of tasks are in `task_options` there. The tables show "
        "the values of the keyword. Where no modes are named, every mode that trains has the "
        "setting.",
    ]
    for role in ROLES:
        if role != "tasks":
            flag = "" if role == "regularizers" else f" The flag is `--{role.replace('_', '-')}`."
            modes = modes_text(RunSettings.by_key()[role])
            of_modes = f" Modes: {modes}." if modes else ""
            title = role.replace("_", " ")
            parts.append(f"## {title}\n\nThe default is {default_text(role)}.{flag}{of_modes}")
            parts += [method_entry(method) for method in methods(role).values()]
    parts += ["## every run", "\n".join(settings_table(RunSettings, of_every_run())[1:])]
    parts += ["## tasks", *filter(None, map(task_entry, TASKS.values()))]
    return "\n\n".join([*parts, *presets()]) + "\n"


def of_every_run() -> dict[str, Field[Any]]:
    """Return the settings of a run that belong to no method, by name."""
    by_key = RunSettings.by_key()
    return {key: one for key, one in by_key.items() if key not in ROLES and "help" in one.metadata}


def default_text(role: str) -> str:
    """Return the method of a role that a run has by default, as text."""
    if role == "regularizers":
        return "none: each needs a weight"
    if None in ROLES[role].methods:
        return f"`{ROLES[role].absent}`"
    return f"`{next(iter(methods(role)))}`"


def method_entry(method: type[Settings]) -> str:
    """Return name, description, own defaults of other settings, and settings as Markdown."""
    text = " ".join((method.__doc__ or "").split())
    own = getattr(method, "defaults", {})
    if defaults := ", ".join(
        f"`--{flag_name(key)}{'' if value is True else f' {value}'}`" for key, value in own.items()
    ):
        text += f" Defaults with it: {defaults}."
    lines = [f"**{method.name}**: {text}"]
    return "\n".join([*lines, *settings_table(method, method.by_key())])


def task_entry(task: type[TaskOptions]) -> str:
    """Return a task's name and its own options; those shared by several tasks are left out."""
    own = {
        f"{task.name}_{option}": one
        for option, one in task.by_key().items()
        if not one.metadata.get("shared")
    }
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
        lines.append(f"| {flag_text(key, one)} | {expected(hints[one.name])} | {shown} | {help} |")
    return lines


def modes_text(one: Field[Any]) -> str:
    """Return the modes that have a setting; empty for all that train."""
    return ", ".join(one.metadata.get("modes", ()))


def flag_text(key: str, one: Field[Any]) -> str:
    """Return the flag of a setting, or its keyword if it has none, as Markdown."""
    if one.metadata.get("flag") is False:
        return f"`{key}`, in Python only"
    flag = flag_name(key)
    return f"`--{flag}`, `--no-{flag}`" if default_of(one) is True else f"`--{flag}`"


def flag_name(key: str) -> str:
    return key.replace("_", "-")


def presets() -> list[str]:
    """Return a heading and a table per preset."""
    parts = ["## presets", "Defaults by `--preset NAME`; a setting that is given wins."]
    for name, preset in PRESETS.items():
        lines = [f"**{name}**: {preset.paper}", "", "| setting | value | of the paper | mode |"]
        lines.append("|---|---|---|---|")
        for mode, several in {"": preset.settings, **preset.by_mode}.items():
            for key, (value, source) in several.items():
                lines.append(f"| `{key}` | `{value}` | {source} | {mode} |")
        parts.append("\n".join(lines))
    return parts


def main() -> None:
    PAGE.write_text(methods_page(), "utf-8")


if __name__ == "__main__":
    main()
