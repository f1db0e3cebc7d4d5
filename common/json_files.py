"""JSON files, and checksums of the files in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from common.atomic_files import atomic_write_text, check_regular
from common.errors import EncoderError, UserError

SUMS = "SHA256SUMS"  # sha256sum's format: `sha256sum --check SHA256SUMS` makes the same check


def integrity_error(folder: Path) -> str | None:
    """Return what is wrong with a sealed folder, in one line; None for an intact one.

    The file of checksums is compared as a whole, so that any changed byte of it is found, too.
    """
    if (folder / SUMS).exists() and not (folder / SUMS).is_file():
        return f"{folder / SUMS}: expected a regular file, found another kind"
    try:
        written = (folder / SUMS).read_bytes()
    except FileNotFoundError:
        return f"{folder}: expected its {SUMS}, found none: incomplete"
    except OSError as error:
        return f"{folder / SUMS}: cannot be read: {error.strerror}"
    try:
        found = checksums(folder).encode()
    except OSError as error:
        return f"{error.filename}: cannot be read: {error.strerror}"
    if written == found:
        return None
    return f"{folder}: damaged: {disagreement(written, found)}"


def disagreement(written: bytes, found: bytes) -> str:
    """Return where the checksums `written` in a folder differ from those `found`."""

    def by_name(sums: bytes) -> dict[str, str]:
        lines = [line.partition("  ") for line in sums.decode("utf-8", "replace").splitlines()]
        return {name: checksum for checksum, _, name in lines if name}

    recorded, here = by_name(written), by_name(found)
    for what, names in (
        ("is missing", recorded.keys() - here.keys()),
        ("was changed", {name for name in here if recorded.get(name, here[name]) != here[name]}),
        ("is not among its checksums", here.keys() - recorded.keys()),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            return f"{min(names)}{more} {what}"
    return f"{SUMS} was changed"


def checksums(folder: Path, patterns: Iterable[str] = ("**/*",)) -> str:
    """Return one line `sha256  name` per file of a folder, sorted by name."""
    found = {path for pattern in patterns for path in folder.glob(pattern)}
    files = sorted(path for path in found if path.is_file() and path.name != SUMS)
    return "".join(f"{digest(file)}  {file.relative_to(folder).as_posix()}\n" for file in files)


def digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def read_json(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Any]:
    """Read the JSON object in a file; raise `error_class` with one line for anything else."""
    check_regular(file, error_class)
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise error_class(f"{file}: expected a JSON object, found: {error}") from error
    if not isinstance(content, dict):
        raise error_class(f"{file}: expected a JSON object, found a {type(content).__name__}")
    return content


def read_json_if_any(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Any]:
    """Return the JSON object in a file, as `read_json` does; empty if the file does not exist."""
    return read_json(file, error_class) if file.exists() else {}


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object atomically."""
    atomic_write_text(file, json.dumps(content, indent=2) + "\n")
