"""Files: written whole or not at all, JSON, checksums, and locks between processes."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.errors import EncoderError, UserError

STATE = "state.json"  # of a complete checkpoint: what it is, and the checksums of its files
EXPORTED = "run.json"  # the settings of an exported run, whose config.json is the encoder's
HEADS = "heads.safetensors"  # of a checkpoint or an export


def is_run(config: Mapping[str, Any]) -> bool:
    """Return whether the content of a config.json is the settings of a run, not an encoder's."""
    return {"mode", "tasks"} <= config.keys()


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


def digest_of_json(content: Any) -> str:
    """Return the SHA-256 of a value as JSON."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def read_json(file: Path, error_class: type[UserError] = EncoderError) -> dict[str, Any]:
    """Read the JSON object in a file; raise `error_class` with one line for anything else."""
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


def complete_folder(folder: Path, state: Mapping[str, Any]) -> None:
    """Write `state` and the checksums of the files in a folder, which make it complete."""
    files = [one for one in sorted(folder.rglob("*")) if one.is_file()]
    digests = {str(one.relative_to(folder)): digest(one) for one in files}
    content = {"files": digests, "state": state}
    write_json(folder / STATE, {**content, "sha256": digest_of_json(content)})


def read_state(folder: Path, error_class: type[UserError] = EncoderError) -> dict[str, Any]:
    """Return the state of a complete folder; raise `error_class` if one of its files changed."""
    content = read_json(folder / STATE, error_class)
    own = content.pop("sha256", None) == digest_of_json(content)
    for name, checksum in content["files"].items() if own else [(STATE, "")]:
        if not own or not (folder / name).is_file() or digest(folder / name) != checksum:
            line = "damaged or missing; restore it, or train or export again"
            raise error_class(f"{folder / name}: {line}")
    state: dict[str, Any] = content["state"]
    return state


@contextmanager
def file_lock(file: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock FILE.lock and yield True; without `wait`, yield False if another holds it.

    The lock ends with the process at the latest.
    """
    with file.with_name(f"{file.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
