"""Atomic writing of files and folders, and locks between processes."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from common.errors import UserError

NEW, OLD = "new", "old"
TEMPORARY = re.compile(
    r"\.(?P<name>.+)\.(?P<machine>[0-9a-f]{8})-(?P<process>[0-9]+)-[0-9a-f]{8}"
    rf"\.minbert-(?P<kind>{NEW}|{OLD})",
    re.DOTALL,
)


def temporary_name(target: Path, kind: str) -> Path:
    """Return a path next to `target` that no other program, process or call uses."""
    mark = f"{machine()}-{os.getpid()}-{secrets.token_hex(4)}"
    return target.with_name(f".{target.name}.{mark}.minbert-{kind}")


def temporaries(folder: Path, name: str | None = None) -> list[Path]:
    """Return the sorted temporary paths in a folder, or only those of the target `name`.

    The list is empty if the folder cannot be read.
    """
    try:
        found = sorted(path for path in folder.iterdir() if TEMPORARY.fullmatch(path.name))
    except OSError:
        return []
    return [path for path in found if name in (None, target_name(path))]


def target_name(path: Path) -> str:
    """Return the target's name for a temporary name; return other names unchanged."""
    match = TEMPORARY.fullmatch(path.name)
    return match["name"] if match else path.name


def kind_of(path: Path) -> str | None:
    """Return `new` or `old` for a temporary name, None for other names."""
    match = TEMPORARY.fullmatch(path.name)
    return match["kind"] if match else None


def owner_may_be_alive(path: Path) -> bool:
    """Return whether the process of a temporary name may be alive; on another machine it may."""
    match = TEMPORARY.fullmatch(path.name)
    if match is None or match["machine"] != machine() or os.name == "nt":
        return True  # Windows has no signal that only tests for a process
    try:
        os.kill(int(match["process"]), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is alive and belongs to another user
        return True
    return True


def machine() -> str:
    """Return eight digits that identify this machine; process ids are unique only per machine."""
    return hashlib.blake2b(platform.node().encode(errors="replace"), digest_size=4).hexdigest()


IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)  # a rename's target exists
KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}


def atomic_write_text(file: Path, text: str) -> None:
    """Write UTF-8 text, with line breaks unchanged, to a temporary file, then rename it.

    Several processes may write the same file, for example in a shared study: the last one wins.
    """
    with atomic_writer(file) as opened:
        opened.write(text)


@contextmanager
def atomic_writer(file: Path) -> Iterator[TextIO]:
    """Open a UTF-8 text file for writing; it is put in place only when it is complete."""
    with atomic_path(file) as new, new.open("x", encoding="utf-8", newline="") as opened:
        yield opened


@contextmanager
def atomic_path(target: Path, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary path for a file or folder, which replaces `target` at the end.

    On an error the temporary path is removed and `target` stays unchanged; an OSError names
    `target`. Remains of killed processes are cleared first. Without `overwrite`, a folder at
    `target` that is not empty is an error.
    """
    recover(target)
    new = temporary_name(target, NEW)
    try:
        yield new
        commit_file(new, target, overwrite)
    except BaseException as error:
        remove(new, ignore_errors=True)
        if isinstance(error, OSError) and error.errno is not None:
            place = str(new if error.filename is None else error.filename)
            if place.startswith(str(new)):
                place = str(target) + place.removeprefix(str(new))
                raise OSError(error.errno, error.strerror, place) from error
        raise


def commit_file(new: Path, target: Path, overwrite: bool = True) -> None:
    """Rename `new` to `target`; flush the files of a folder to disk first.

    An existing folder that is not empty is renamed first, and deleted after the new one is in
    place. If the second rename fails, the first is undone. If the process is killed between them,
    `recover` undoes the first.
    """
    if not new.is_dir():
        os.replace(new, target)
        return
    for path in (new, *new.rglob("*")):
        sync(path)
    old = temporary_name(target, OLD)
    try:
        new.rename(target)
    except OSError as error:
        if not overwrite or error.errno not in IN_THE_WAY:
            raise
        exchange(new, target, old)
    sync(target.parent)
    discard(old)


def exchange(new: Path, target: Path, old: Path) -> None:
    """Rename `target` to `old` and `new` to `target`, or neither."""
    try:
        target.rename(old)
        new.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise


def recover(target: Path) -> None:
    """Clear the temporary paths of `target` that killed processes of this machine left.

    A folder that was being replaced is restored if `target` does not exist; the rest is removed.
    Paths of running processes and of other programs stay unchanged.
    """
    for path in temporaries(target.parent, target.name):
        if owner_may_be_alive(path):
            continue
        with suppress(OSError):  # cleared by another process, or no permission
            if kind_of(path) == OLD and not target.exists():
                path.rename(target)
            else:
                discard(path)


def discard(path: Path) -> None:
    """Delete a temporary path; first rename an `old` folder to a `new` one.

    If the process is killed, `recover` then does not restore a partly deleted folder.
    """
    with suppress(OSError):
        if kind_of(path) == OLD and path.exists():
            path = path.rename(temporary_name(path.with_name(target_name(path)), NEW))
        remove(path)


def remove(path: Path, ignore_errors: bool = False) -> None:
    """Delete a folder with its content, a file, or a link without its target."""
    with suppress(*([OSError] if ignore_errors else [])):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=ignore_errors)
        else:
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    if os.name == "nt":  # Windows cannot flush a file that is opened for reading
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_regular(file: Path, error_class: type[UserError] = UserError) -> None:
    """Raise `error_class`, before opening, for an existing path that is not a regular file.

    Opening a named pipe or a device could block forever.
    """
    try:
        mode = stat.S_IFMT(file.stat().st_mode)
    except (OSError, ValueError):
        return  # opening the file will report the error
    if mode != stat.S_IFREG:
        found = KINDS.get(mode, "a device")
        raise error_class(f"{file}: expected a regular file, found {found}")


@contextmanager
def file_lock(file: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock FILE.lock and yield True; without `wait`, yield False if another holds it.

    The lock ends with the process at the latest. The empty file stays: if it were deleted, two
    processes could hold locks of the same name. On Windows this function does not lock.
    """
    try:
        import fcntl
    except ImportError:
        yield True
        return
    lock = file.with_name(f"{file.name}.lock")
    check_regular(lock)
    with lock.open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def paths_in(folder: Path) -> list[Path]:
    """Return the sorted paths in a folder; empty if it does not exist."""
    return sorted(folder.iterdir()) if folder.is_dir() else []
