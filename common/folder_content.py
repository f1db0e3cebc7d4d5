"""Folders for output: new, empty, or with content of their kind, and used by one process only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from common.atomic_files import file_lock, paths_in, remove
from common.errors import RunError

LOCK = ".several-runs.lock"  # in a folder of several runs


@contextmanager
def locked_folder(folder: Path, lock: str) -> Iterator[None]:
    """Lock a folder for this process by its file `lock`; RunError if another live process has it.

    The lock ends with the process, even if it is killed. A new folder that stays empty is removed
    with the lock.
    """
    new = not folder.exists()
    if not new and not folder.is_dir():
        line = "expected a folder or nothing, found a file"
        raise RunError(f"{folder}: {line}; choose another --output")
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            acquired = stack.enter_context(file_lock(folder / Path(lock).stem, wait=False))
        except OSError as error:
            line = f"expected a folder that can be written, found {error.strerror}"
            raise RunError(f"{folder}: {line}; choose another --output") from error
        if not acquired:
            raise RunError(f"{folder}: expected no running process in it, found one")
        try:
            yield
        finally:
            if new and [path.name for path in paths_in(folder)] == [lock]:
                remove(folder, ignore_errors=True)


@contextmanager
def folder_of_runs(
    folder: Path, what: str, names: tuple[str, ...], prefixes: tuple[str, ...] = ()
) -> Iterator[None]:
    """Check that a folder is new or has only content of `what`, and lock it for this process."""
    check_content(folder, what, names, prefixes)
    with locked_folder(folder, LOCK):
        yield


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
