"""Writes the methods, settings and files in docs/reference.md: python -m docs.build_reference"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from common.settings import Settings, choices_of, default_of, hints_of, methods, scalars
from losses.objectives import PretrainObjective
from multitask.settings.methods import ROLES
from multitask.settings.run_settings import RunSettings
from tasks.built_in import DATA_SETS, TASKS

PAGE = Path(__file__).with_name("reference.md")
BUILT = re.compile(r"(?<=<!-- built -->\n).*(?=<!-- end -->)", re.DOTALL)


def page() -> str:
    """Return the page with its built part made anew."""
    return BUILT.sub(lambda _: "\n".join(["", *built(), ""]), PAGE.read_text("utf-8"))


def built() -> Iterator[str]:
    """Return the lines of the built part."""
    known = {one.name: one for one in fields(RunSettings)}
    for role, base in ROLES.items():
        default = getattr(default_of(known[role]), "name", "none")
        about = known[role].metadata["help"].capitalize()
        yield from (f"## {role.capitalize()}", "")
        yield from (f"{about}. Default: {default}.{modes_of(known[role])}", "")
        for name, one in sorted(methods(base).items()):
            mode = " (pretrain)" if issubclass(one, PretrainObjective) else ""
            yield f"- `{name}`{mode}: {(one.__doc__ or '').splitlines()[0]}"
        yield from ("", "Settings:", "", *setting_lines(methods(base)), "")
    yield from ("## Every run", "", *setting_lines({"": RunSettings}), "")
    yield from ("## Options of tasks", "", *setting_lines(TASKS), "", "## Files of tasks", "")
    for name, row in DATA_SETS.items():
        files = [f"`{file}`" for file in (row.train, row.dev, row.test) if isinstance(file, str)]
        yield f"- `{name}`: {', '.join(files)} ({', '.join((*row.texts, row.label))})"


def setting_lines(owners: Mapping[str, type[Settings]]) -> Iterator[str]:
    """Return a line for each setting, once, with the methods that have it."""
    found: dict[str, list[str]] = {}
    for name, owner in owners.items():
        for one in fields(owner):
            if one.name not in (*ROLES, "tasks") and not one.metadata.get("shared"):
                found.setdefault(setting_line(owner, one), []).append(name)
    for text, names in found.items():
        yield text.replace("OF", "" if len(names) == len(owners) else f" ({', '.join(names)})")


def setting_line(owner: type[Settings], one: Field[Any]) -> str:
    """Return flag or key of a setting with its values, OF for its methods, meaning and default."""
    hint, default, about = hints_of(owner)[one.name], default_of(one), one.metadata
    keyed = about.get("flag") is False
    words = {bool: "true|false" if keyed else "", int: "N", float: "X", str: "NAME"}
    kinds = next((word for kind, word in words.items() if kind in scalars(hint)), "")
    values = "|".join(filter(None, choices_of(hint))) or about.get("metavar") or kinds
    flag = f"--{owner.prefix}{one.name}".replace("_", "-")
    name = f"{one.name}: {values}" if keyed else f"{flag} {values}".strip()
    notes = [about["source"]] if "source" in about else []
    if default not in (None, {}, (), "", False, MISSING) and "(default" not in about["help"]:
        shown = " ".join(default) if isinstance(default, tuple) else default
        notes.insert(0, f"default {shown}")
    more = f" ({'; '.join(notes)})" if notes else ""
    return f"- `{name}`OF: {about['help']}{more}.{modes_of(one)}"


def modes_of(one: Field[Any]) -> str:
    """Return a sentence with the modes that have a setting; nothing for all that train."""
    return f" Modes: {', '.join(modes)}." if (modes := one.metadata.get("modes")) else ""


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
