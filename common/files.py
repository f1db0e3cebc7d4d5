"""Files: written whole or not at all, checksums, and JSON."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.errors import EncoderError, UserError


@contextmanager
def atomic_path(target: Path, overwrite: bool = True) -> Iterator[Path]:
    """Yield a path beside `target` for a file or folder, which replaces `target` at the end.

    After an error `target` is as before. Without `overwrite`, a folder with content is an error.
    """
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    remove(new)
    try:
        yield new
        if new.is_dir() and overwrite:
            remove(target)
        os.replace(new, target)
    except OSError as error:
        if error.errno:  # such as a full disk
            error.filename = error.filename or str(target)
        raise
    finally:
        remove(new)


def atomic_write_text(file: Path, text: str) -> None:
    """Write UTF-8 text atomically, with line breaks as they are."""
    with atomic_path(file) as new:
        new.write_text(text, "utf-8", newline="")


def remove(path: Path) -> None:
    """Delete a folder with its content, a file, or a link without its target, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def read_json(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Any]:
    """Read the JSON object in a file; raise `error_class` with one line for anything else."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise error_class(f"{file}: cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise error_class(f"{file}: expected a JSON object, found a {type(content).__name__}")
    return content


def read_json_if_any(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Any]:
    """Return the JSON object in a file, as `read_json` does; empty if the file does not exist."""
    return read_json(file, error_class) if file.exists() else {}


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object atomically."""
    atomic_write_text(file, json.dumps(content, indent=2) + "\n")
