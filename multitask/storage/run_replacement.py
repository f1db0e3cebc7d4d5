"""Replacement of a merged run by a new one, which is written to a temporary folder first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from common.atomic_files import atomic_path, remove
from multitask.storage.run_folder import FILES, FOLDERS, RunFolder

MERGED, BEFORE = ".merged", ".before"  # hidden folders while a merged run is replaced


@contextmanager
def replacement(run: RunFolder) -> Iterator[RunFolder]:
    """Yield a temporary folder, whose parts replace those of the run at the end.

    On an error the run stays as it was. If the process is killed while parts are renamed, those of
    the run are in the hidden folder `.before`.
    """
    whole, before = run.path / MERGED, run.path / BEFORE
    with atomic_path(whole) as new:
        new.mkdir()
        yield RunFolder(new)
    remove(before)
    before.mkdir()
    with ExitStack() as undo:
        undo.callback(remove, whole)
        undo.callback(move_parts, before, run.path)
        move_parts(run.path, before)
        undo.callback(run.remove)  # it comes first: the new parts
        move_parts(whole, run.path)
        undo.pop_all()
    remove(whole)
    remove(before)


def move_parts(source: Path, target: Path) -> None:
    """Move the parts of a run to another folder, the configuration last, as it marks a run."""
    for name in FOLDERS + FILES:
        if (source / name).exists():
            (source / name).rename(target / name)
