"""A folder of leaderboard files: checked against the data, scored, packed."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.tables import text_table
from tasks.base import Task
from tasks.leaderboard import Checked, check_predictions
from tasks.metrics import overall

SPLITS = ("dev", "test")
EPOCH = (1980, 1, 1, 0, 0, 0)  # of a zip: the same files make the same bytes


@dataclass(frozen=True)
class FileScore:
    """A prediction file, and its metrics where it is sound and there are labels."""

    task: str
    split: str
    checked: Checked
    metrics: Mapping[str, float]


def check_folder(
    folder: Path,
    gold: Path,
    tasks: Mapping[str, Task],
    wanted: Sequence[str] | None = None,
    every_split: bool = False,
) -> list[FileScore]:
    """The files of every split of which one is there; DataError where gold data cannot be read.

    With `wanted`, files of these tasks, which have to be there; else those that are. With
    `every_split` those of a split of which there is none are missing, too.
    """
    found = []
    for split in SPLITS:
        files = {
            name: folder / task.output.name(split)
            for name, task in tasks.items()
            if task.output is not None
        }
        there = [name for name, file in files.items() if file.exists()]
        for name in (wanted or there) if there or every_split else ():
            found.append(check_file(files[name], tasks[name], split, gold))
    return found


def check_file(file: Path, task: Task, split: str, gold: Path) -> FileScore:
    """One file against the ids and labels of the data."""
    examples = task.read(gold, split)
    assert task.output is not None
    checked = check_predictions(file, task.output, examples.ids)
    metrics: Mapping[str, float] = {}
    if checked.values is not None and examples.targets is not None:
        metrics = task.kind.metrics(checked.values.astype(examples.targets.dtype), examples.targets)
    return FileScore(task.name, split, checked, metrics)


def score_table(found: Sequence[FileScore]) -> str:
    """A line a file and metric, and both overall scores of a split with all three tasks."""
    rows = []
    for one in found:
        count, state = f"{one.checked.rows:,}", "wrong" if one.checked.problems else "sound"
        figures = [(name, f"{value:.4f}") for name, value in one.metrics.items()]
        for name, value in figures or [("", "")]:
            rows.append([one.split, one.task, count, state, name, value])
    for split in SPLITS:
        metrics = {one.task: one.metrics for one in found if one.split == split and one.metrics}
        rows += [
            [split, "all", "", "", name, f"{value:.4f}"] for name, value in overall(metrics).items()
        ]
    return text_table(["split", "task", "rows", "file", "metric", "score"], rows)


def pack(files: Sequence[Path], target: Path) -> None:
    """The files, without their folders, in a zip that is the same for the same files."""
    temporary = target.with_name(target.name + ".tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            info = zipfile.ZipInfo(file.name, EPOCH)
            archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED)
    os.replace(temporary, target)
