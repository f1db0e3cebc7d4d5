"""JSON files, and files whose checksums tell that they were edited."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.atomic_files import check_regular, write_whole
from common.errors import EncoderError, UserError

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


SEAL = "sha256"  # the last key of a sealed object: a checksum of all others


def read_json(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Any]:
    """The object in a file; `error_class`, with one line, for anything else."""
    check_regular(file, error_class)
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise error_class(f"{file}: expected a JSON object, found: {error}") from error
    if not isinstance(content, dict):
        raise error_class(f"{file}: expected a JSON object, found a {type(content).__name__}")
    return content


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write an object, whole or not at all."""
    write_whole(file, json.dumps(content, indent=2) + "\n")


def write_sealed(file: Path, content: Mapping[str, Any]) -> None:
    """Write an object and, as its last key, its checksum."""
    write_json(file, {**content, SEAL: seal_of(content)})


def read_sealed(
    file: Path, error_class: type[UserError], remedy: str, required: bool = True
) -> dict[str, Any]:
    """The object that `write_sealed` wrote, without its checksum.

    Raises `error_class`, which ends with the `remedy`, for one that was edited and, where it is
    `required`, for one without a checksum.
    """
    content = read_json(file, error_class)
    seal = content.pop(SEAL, None)
    if seal is None and required:
        raise error_class(f"{file}: expected its {SEAL} beside its figures, found none; {remedy}")
    if seal is not None and seal != seal_of(content):
        raise error_class(f"{file}: edited: its content and its {SEAL} do not agree; {remedy}")
    return content


def seal_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of an object as JSON, whatever the order of its keys and its white space."""
    plain = json.loads(json.dumps({k: v for k, v in content.items() if k != SEAL}))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
