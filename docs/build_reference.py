"""Generator of docs/api.md and docs/methods.md from the code: python -m docs.build_reference"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import Field
from pathlib import Path
from typing import Any

import losses
from common.settings import Settings, default_of, expected, hints_of
from multitask.methods import ROLES, methods
from multitask.presets import PRESETS
from tasks import TASKS, TaskOptions

PUBLIC = {
    "minbert": ("BiEncoder",),
    "serving": ("MultiTaskModel", "Prediction"),
    "multitask": ("RunConfig", "train", "Run", "task"),
    "multitask.callbacks": ("TrainStart", "EpochEnd"),
    "losses": tuple(losses.__all__),
    "multitask.combiners": ("pcgrad_weights", "epo_weights"),
    "multitask.sampling": ("annealed_probabilities",),
    "ensemble": ("majority_vote", "average"),
    "tasks.metrics": ("overall_score",),
}
METHODS = {
    "BiEncoder": (
        *("from_pretrained", "encode", "encode_stream", "embed", "save_pretrained"),
        "push_to_hub",
    ),
    "MultiTaskModel": ("load", "predict", "predict_stream", "encode"),
    "Run": ("compare", "push_to_hub"),
}


def api_page() -> str:
    """Return the whole page: a section per module, an entry per name."""
    parts = ["# API", "Built from the docstrings by `python -m docs.build_reference`."]
    for module, names in PUBLIC.items():
        parts.append(f"## `{module}`")
        found = importlib.import_module(module)
        for name in names:
            one = getattr(found, name)
            parts += api_entry(f"{module}.{name}", one, "###")
            for method in METHODS.get(name, ()):
                parts += api_entry(f"{name}.{method}", getattr(one, method), "####")
    return "\n\n".join(parts) + "\n"


def api_entry(name: str, one: Any, level: str) -> list[str]:
    """Return the name, the signature and the unchanged docstring as Markdown."""
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(one)))
    shown = re.sub(r"<function (\w+) at \w+>", r"\1", shown)
    text = inspect.getdoc(one) or ""
    return [f"{level} {name}", f"```text\n{name}{shown}\n\n{text}\n```"]


def methods_page() -> str:
    """Return the whole page: a section per role, an entry per method with its settings."""
    parts = [
        "# Methods and their settings",
        "Built from the methods' own descriptions by `python -m docs.build_reference`. The first "
        "one of a section is the default. Every setting is a flag, a keyword of `RunConfig`, and a "
        "key of `config.json`, under the same name; options of tasks are in `task_options` there.",
    ]
    for role in ROLES:
        if role != "tasks":
            parts.append(f"## {role.replace('_', ' ')}")
            parts += [method_entry(method) for method in methods(role).values()]
    parts += ["## tasks", *filter(None, map(task_entry, TASKS.values()))]
    return "\n\n".join([*parts, *presets()]) + "\n"


def method_entry(method: type[Settings]) -> str:
    """Return the name, the description and the settings of a method as Markdown."""
    text = " ".join((method.__doc__ or "").split())
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
        shown = "" if default in (None, {}) else f"`{default}`"
        if source := one.metadata.get("source"):
            shown += f" ({source})"
        help = one.metadata.get("help", "")
        lines.append(
            f"| `--{key.replace('_', '-')}` | {expected(hints[one.name])} | {shown} | {help} |"
        )
    return lines


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


PAGES = {"api.md": api_page, "methods.md": methods_page}


def main() -> None:
    for name, page in PAGES.items():
        Path(__file__).with_name(name).write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
