"""Folders for output: new, empty, or with content of their kind, and used by one process only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from common.atomic_files import file_lock, paths_in, remove
from common.errors import RunError


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


def foreign_name(folder: Path, names: tuple[str, ...]) -> str | None:
    """Return the first name in a folder that is not known; hidden ones do not count."""
    found = (path.name for path in paths_in(folder))
    return next((one for one in found if one not in names and not one.startswith(".")), None)
