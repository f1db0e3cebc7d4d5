"""Tasks from Python: by name, by a description of files, or from lists of texts and labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.atomic_files import atomic_write_text
from common.errors import SettingsError
from common.settings import plain, short_repr, suggestion
from tasks import TASKS, TaskOptions
from tasks.described import NAME, Described, checked_description, parse_description
from tasks.task_inference import settle

TEXTS, LABEL = ("text", "other text"), "label"  # columns of a file of lists


@dataclass(frozen=True)
class OwnTask:
    """A task on the user's own files, completely described."""

    described: Described

    @property
    def name(self) -> str:
        return self.described.name


def task(
    first: str | Sequence[str] | Sequence[Sequence[str]],
    labels: Sequence[str | int | float] | None = None,
    *,
    name: str = "own",
    folder: str | Path = "runs/data",
    **options: Any,
) -> TaskOptions | OwnTask:
    """A task for `RunConfig(tasks=...)`.

    Args:
        first: the name of a built-in task with its options (`task("sst", head="softmax")`); a
            description, `NAME=FILE:type=...,text=...,label=...` or `NAME=FILE.yaml`; or a list of
            n texts or n pairs of texts, with `labels`.
        labels: n labels: classes, as texts or whole numbers; or, for the similarity of pairs,
            numbers, at least one of them a float.
        name: the name of a task from lists.
        folder: the folder in which lists are stored as a file, named after its checksum. The run
            reads this file, also when it is resumed.
        options: options of a built-in task; for lists the keys of a description, such as
            `type="classification"` for pairs with numbers as labels.

    Raises:
        SettingsError, DescriptionError, DataError: with a message of one line.
    """
    if isinstance(first, str):
        if labels is not None:
            raise SettingsError(f"labels: expected only for a list of texts, found task {first!r}")
        if first in TASKS:
            return TASKS[first](**options)
        if "=" not in first:
            line = f"tasks: expected one of {', '.join(TASKS)}, or NAME=FILE, found {first!r}"
            raise SettingsError(line + suggestion(first, TASKS))
        if options:
            line = f"expected inside the description, found {next(iter(options))} outside of it"
            raise SettingsError(f"options: {line}")
        own, _, _ = first.partition("=")
        return OwnTask(settle(own, parse_description(first)))
    if not isinstance(first, Iterable):
        raise SettingsError(f"texts: expected a name or a list of texts, found {short_repr(first)}")
    rows = [texts_of(one) for one in first]
    given_labels = plain(list(() if labels is None else labels))
    if len(given_labels) != len(rows):
        found = len(given_labels) or "none"
        raise SettingsError(f"labels: expected {len(rows)}, one for each text, found {found}")
    for one in given_labels:
        if not isinstance(one, str | int | float):
            raise SettingsError(f"labels: expected texts or numbers, found {short_repr(one)}")
    if not NAME.fullmatch(name):
        line = "expected lower-case letters, digits, hyphens and underscores"
        raise SettingsError(f"name: {line}, found {short_repr(name)}")
    widths = sorted({len(one) for one in rows}) or [1]
    if len(widths) > 1 or widths[0] not in (1, 2):
        found = " and ".join(map(str, widths))
        raise SettingsError(f"texts: expected one or two in each row, found {found}")
    columns = TEXTS[: widths[0]]
    lines = [
        dict(zip((*columns, LABEL), (*row, one), strict=True))
        for row, one in zip(rows, given_labels, strict=True)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    checksum = hashlib.sha256(text.encode()).hexdigest()[:16]
    file = Path(folder) / f"{name}-{checksum}.jsonl"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_write_text(file, text)
    kinds = {type(one) for one in given_labels}
    numbers = len(columns) == 2 and float in kinds and kinds <= {int, float}
    kind = "similarity" if numbers else "classification"
    given = {"train": str(file), "type": kind, "text": list(columns), "label": LABEL, **options}
    return OwnTask(settle(name, checked_description(name, given)))


def texts_of(row: Any) -> tuple[str, ...]:
    """Return a text or a pair of texts as a tuple; raise SettingsError for anything else."""
    texts = (row,) if isinstance(row, str) else row
    if not isinstance(texts, list | tuple) or not all(isinstance(one, str) for one in texts):
        raise SettingsError(f"texts: expected texts or pairs of texts, found {short_repr(row)}")
    return tuple(texts)
