"""Checksums of a folder's files, kept inside it: whether it is whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

SUMS = "SHA256SUMS"  # as sha256sum writes it: `sha256sum --check SHA256SUMS` tells the same


def fault(folder: Path) -> str | None:
    """What is wrong with a sealed folder, in one line; None for a whole one.

    The file of checksums is compared as a whole, so that no byte of it can be wrong either.
    """
    if (folder / SUMS).exists() and not (folder / SUMS).is_file():
        return f"{folder / SUMS}: expected a regular file, found another"
    try:
        written = (folder / SUMS).read_bytes()
    except FileNotFoundError:
        return f"{folder}: expected its {SUMS}, found none: not whole, or of an older version"
    except OSError as error:
        return f"{folder / SUMS}: cannot be read: {error.strerror}"
    try:
        found = sums(folder).encode()
    except OSError as error:
        return f"{error.filename}: cannot be read: {error.strerror}"
    if written == found:
        return None
    return f"{folder}: damaged: its files and their {SUMS} do not agree"


def sums(folder: Path) -> str:
    """`sha256  name` of every file of a folder, a line each, by name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    return "".join(f"{digest(file)}  {file.relative_to(folder).as_posix()}\n" for file in files)


def digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
