"""Files and folders that are never half there, and never written by two at a time."""

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
    """A name beside `target` that no other program, process or call uses."""
    mark = f"{machine()}-{os.getpid()}-{secrets.token_hex(4)}"
    return target.with_name(f".{target.name}.{mark}.minbert-{kind}")


def temporaries(folder: Path, name: str | None = None) -> list[Path]:
    """Files and folders with temporary names in a folder, in their order; or those of one target.

    Nothing where the folder cannot be listed.
    """
    try:
        found = sorted(path for path in folder.iterdir() if TEMPORARY.fullmatch(path.name))
    except OSError:
        return []
    return [path for path in found if name in (None, target_name(path))]


def target_name(path: Path) -> str:
    """The name that a temporary one stands for; any other name itself."""
    match = TEMPORARY.fullmatch(path.name)
    return match["name"] if match else path.name


def kind_of(path: Path) -> str | None:
    """`new` or `old` of a temporary name, None of any other."""
    match = TEMPORARY.fullmatch(path.name)
    return match["kind"] if match else None


def alive(path: Path) -> bool:
    """Whether the process of a temporary name may live: that of another machine may."""
    match = TEMPORARY.fullmatch(path.name)
    if match is None or match["machine"] != machine() or os.name == "nt":
        return True  # Windows has no signal that only asks
    try:
        os.kill(int(match["process"]), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it lives, and is another user's
        return True
    return True


def machine() -> str:
    """Eight digits of this machine's name: process ids are those of one machine."""
    return hashlib.blake2b(platform.node().encode(errors="replace"), digest_size=4).hexdigest()


IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)  # how a rename finds its target
KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}


def write_whole(file: Path, text: str) -> None:
    """Write UTF-8, with line breaks as they are, under a temporary name, then rename.

    Processes may write the same file at a time, as those that share a study do: the last one wins.
    """
    with whole_file(file) as opened:
        opened.write(text)


@contextmanager
def whole_file(file: Path) -> Iterator[TextIO]:
    """A file of UTF-8 text to be written bit by bit, in place once all of it is there."""
    with written_aside(file) as new, new.open("x", encoding="utf-8", newline="") as opened:
        yield opened


@contextmanager
def written_aside(target: Path, overwrite: bool = True) -> Iterator[Path]:
    """A temporary name for a file or folder, which takes the place of `target` at the end.

    On an error it is removed and `target` stays as it was; an error of the disk names `target`.
    What killed processes left of `target` is cleared first. Without `overwrite` a folder that is
    not empty is an error, too.
    """
    recover(target)
    new = temporary_name(target, NEW)
    try:
        yield new
        put_in_place(new, target, overwrite)
    except BaseException as error:
        remove(new, ignore_errors=True)
        if isinstance(error, OSError) and error.errno is not None:
            place = str(new if error.filename is None else error.filename)
            if place.startswith(str(new)):
                place = str(target) + place.removeprefix(str(new))
                raise OSError(error.errno, error.strerror, place) from error
        raise


def put_in_place(new: Path, target: Path, overwrite: bool = True) -> None:
    """Rename `new` to `target`; a folder after its files were brought to the disk.

    A folder that is there and not empty is renamed before, and deleted only when the new one has
    its place. Where the second rename fails, the first is taken back; where the process is killed
    between them, `recover` does so.
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
    """Clear what processes of this machine that were killed left of `target`.

    A folder that one of them was replacing is put back where nothing took its place; the rest is
    removed. Names of living processes, and of other programs, are left alone.
    """
    for path in temporaries(target.parent, target.name):
        if alive(path):
            continue
        with suppress(OSError):  # another process may have cleared it, or may be the only one to
            if kind_of(path) == OLD and not target.exists():
                path.rename(target)
            else:
                discard(path)


def discard(path: Path) -> None:
    """Delete what has a temporary name; a folder that was replaced becomes an unfinished one first.

    Killed in the middle, half of it would be put back.
    """
    with suppress(OSError):
        if kind_of(path) == OLD and path.exists():
            path = path.rename(temporary_name(path.with_name(target_name(path)), NEW))
        remove(path)


def remove(path: Path, ignore_errors: bool = False) -> None:
    """Delete a folder with all it holds, or a file, or a link but never what it leads to."""
    with suppress(*([OSError] if ignore_errors else [])):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=ignore_errors)
        else:
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    if os.name == "nt":  # it has no such call for files that were only read
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_regular(file: Path, error_class: type[UserError] = UserError) -> None:
    """Refuse, in one line, what is there but is no regular file, before it is opened.

    A named pipe or a device may be waited for without end.
    """
    try:
        mode = stat.S_IFMT(file.stat().st_mode)
    except (OSError, ValueError):
        return  # opening it says what is wrong
    if mode != stat.S_IFREG:
        found = KINDS.get(mode, "a device")
        raise error_class(f"{file}: expected a regular file, found {found}")


@contextmanager
def alone(file: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock FILE.lock, which ends with the process; False if another holds it.

    With `wait` it is waited for. The empty file stays: were it deleted, two processes could hold
    locks of the same name. Where a system has no such locks (Windows), everybody is alone.
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
