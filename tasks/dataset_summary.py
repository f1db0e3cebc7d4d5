"""What there is of a task in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.base import Task
from tasks.text_files import is_there


@dataclass(frozen=True)
class Found:
    """Examples by split, and the first training example with its label."""

    counts: Mapping[str, int]
    first: tuple[str, ...] = ()
    label: str | None = None


def look(task: Task, folder: Path) -> Found:
    """Read every split that has a file; DataError where one cannot be used."""
    counts: dict[str, int] = {}
    first: tuple[str, ...] = ()
    label = None
    for split in task.source.splits:
        if not is_there(Path(task.source.where(folder, split))):
            continue
        examples = task.read(folder, split)
        counts[split] = len(examples)
        if split == "train":
            first = tuple(column[0] for column in examples.texts)
            if examples.targets is not None:
                label = shown(task, examples.targets[0])
    return Found(counts, first, label)


def shown(task: Task, target: Any) -> str:
    """A target as people write it."""
    if task.kind.class_names:
        return task.kind.class_names[int(target)]
    return task.output.show(target) if task.output else f"{target:g}"
