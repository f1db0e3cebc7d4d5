"""Names of what is being written, beside the file or folder whose place it is to take.

`.NAME.MACHINE-PROCESS-RANDOM.minbert-new` is what a process writes before it is renamed to NAME,
`.minbert-old` at the end marks the folder NAME that is being replaced. No other program has such
names, so that nothing of a user is ever taken for a leftover.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
from pathlib import Path

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
