"""The check that a folder for output is new, empty, or has only content of its kind."""

from __future__ import annotations

from pathlib import Path

from common.atomic_files import paths_in
from common.errors import RunError


def check_content(
    folder: Path, what: str, names: tuple[str, ...], prefixes: tuple[str, ...] = ()
) -> None:
    """Raise RunError if a folder has other content than `what`, whose names are known."""
    if found := foreign_name(folder, names, prefixes):
        line = f"expected a new or empty folder, or one of {what}, found {found}"
        raise RunError(f"{folder}: {line}; choose another --output")


def foreign_name(
    folder: Path, names: tuple[str, ...], prefixes: tuple[str, ...] = ()
) -> str | None:
    """Return the first name in a folder that is not known; hidden ones do not count."""
    found = (path.name for path in paths_in(folder))
    known = (".", *prefixes)
    return next((one for one in found if one not in names and not one.startswith(known)), None)
