"""Generator of docs/methods.md from the descriptions of methods: python -m docs.build_methods"""

from __future__ import annotations

from pathlib import Path

from common.settings import Settings, default_of, expected, hints_of
from multitask.methods import ROLES, methods
from multitask.presets import PRESETS

PAGE = Path(__file__).with_name("methods.md")


def page() -> str:
    """Return the whole page: a section per role, an entry per method with its settings."""
    parts = [
        "# Methods and their settings",
        "Built from the methods' own descriptions by `python -m docs.build_methods`. The first one "
        "of a section is the default. Every setting is a flag, a keyword of `RunConfig`, and a key "
        "of `config.json`, under the same name.",
    ]
    for role in ROLES:
        if role == "tasks":
            continue
        parts.append(f"## {role.replace('_', ' ')}")
        parts += [entry(method) for method in methods(role).values()]
    return "\n\n".join([*parts, *presets()]) + "\n"


def entry(method: type[Settings]) -> str:
    """Return the name, the description and the settings of a method as Markdown."""
    text = " ".join((method.__doc__ or "").split())
    lines = [f"**{method.name}**: {text}"]
    if fields := method.by_key():
        hints = hints_of(method)
        lines += ["", "| setting | a value is | default | |", "|---|---|---|---|"]
        for key, one in fields.items():
            default = default_of(one)
            shown = "" if default in (None, {}) else f"`{default}`"
            if source := one.metadata.get("source"):
                shown += f" ({source})"
            help = one.metadata.get("help", "")
            lines.append(
                f"| `--{key.replace('_', '-')}` | {expected(hints[one.name])} | {shown} | {help} |"
            )
    return "\n".join(lines)


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
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
