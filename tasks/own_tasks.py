"""Tasks on a user's own data: from Python, from lists of texts or from a description of files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import SettingsError
from common.files import atomic_write_text
from common.sequences import no_sequence
from common.settings import hints_of_fields, plain, short
from common.suggestions import suggestion
from tasks.base import Task
from tasks.described import checked_description, parse_description
from tasks.labelled_files import LabelledFiles, Source
from tasks.own_types import TYPES, type_of_lists
from tasks.own_types.base import (
    MISSING_REPRS,
    DescriptionError,
    OwnType,
    Parts,
    TaskDescription,
    check_labels,
)
from tasks.own_types.multi_label import check_no_matrix
from tasks.registry import TASKS, TaskOptions
from tasks.splits import HashedSource
from tasks.task_description import from_json, name_fault
from tasks.task_inference import complete_description
from tasks.text_files import to_text

TEXT = str | None  # type of an option
TEXTS, LABEL = ("text", "other text"), "label"  # columns of a file of lists
# Keys of a description that only a task over the user's own file has.
OF_FILES = ("train", "text", "label", "id", "group", "quotes")


@dataclass(frozen=True)
class OwnTaskOptions:
    """What `TaskOptions` says about a built-in task, about one of the user's own, as described."""

    name: str
    described: Mapping[str, Any]

    @property
    def type(self) -> OwnType:
        return TYPES[self.described["type"]]

    @property
    def texts(self) -> int:
        return len(self.described["texts"])

    @property
    def objectives(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def has_classes(self) -> bool:
        return self.type.predicts == "class"

    @property
    def has_columns(self) -> bool:
        return self.type.predicts in ("class", "labels")

    @property
    def joint(self) -> bool:
        return bool(self.described.get("joint"))

    @property
    def vectors(self) -> int:
        return 1 if self.joint else self.texts

    def build(self) -> Task:
        return build_own_task(from_json(self.name, self.described))


def task(
    first: str | Sequence[str] | Sequence[Sequence[str]],
    labels: Sequence[str | int | float | Sequence[str] | None] | None = None,
    *,
    name: str | None = None,
    folder: str | Path | None = None,
    **options: Any,
) -> TaskOptions | TaskDescription:
    """A task for `RunConfig(tasks=...)`.

    Args:
        first: the name of a built-in task with its options (`task("sst", head="softmax")`); a
            description, `NAME=FILE:type=...,text=...,label=...` or `NAME=FILE.yaml`; or a list of
            n texts or n pairs of texts, with `labels`.
        labels: n labels: classes, as texts or whole numbers; for the similarity of pairs,
            numbers, at least one of them a float; for the regression of texts, numbers, at least
            one of them with a fraction; or n lists of labels, which may be empty. A missing label,
            None or NaN, is a blank cell of the file; beside whole numbers of pairs, it needs a
            `type`.
        name: the name of a task from lists; None for `own`.
        folder: the folder in which lists are stored as a file, named after its checksum; None for
            `runs/data`. The run reads this file, also when it is resumed.
        options: options of a built-in task; for lists those keys of a description that are not
            about columns, such as `type="classification"` for pairs with numbers as labels.
            `classes` is its key `labels`: `classes=["low", "high"]`.

    Raises:
        SettingsError, DescriptionError, DataError: with a message of one line.
    """
    if not isinstance(first, str):
        return task_from_lists(
            first, labels, name or "own", Path(folder or "runs/data").expanduser(), options
        )
    for key, value in (("labels", labels), ("name", name), ("folder", folder)):
        if value is not None:
            raise SettingsError(f"{key}: expected only for a list of texts, found task {first!r}")
    if first in TASKS:
        hints = hints_of_fields(TASKS[first])
        for key in options.keys() - hints.keys():
            expected = f"expected options of {', '.join(hints) or 'none'}"
            raise SettingsError(f"{first}: {expected}, found {key!r}{suggestion(key, hints)}")
        numbers = {k: str(v) for k, v in options.items() if type(v) is int and hints.get(k) == TEXT}
        return TASKS[first](**options | numbers)
    if "=" not in first:
        line = f"tasks: expected one of {', '.join(TASKS)}, or NAME=FILE, found {first!r}"
        raise SettingsError(line + suggestion(first, TASKS))
    if options:
        line = f"expected inside the description, found {next(iter(options))} outside of it"
        raise SettingsError(f"options: {line}")
    return complete_description(first.partition("=")[0], parse_description(first))


def task_from_lists(
    texts: Any, labels: Any, name: str, folder: Path, options: dict[str, Any]
) -> TaskDescription:
    """Store lists of texts and labels as a file and return a task that reads it."""
    if wrong := [key for key in OF_FILES if key in options]:
        raise SettingsError(f"{wrong[0]}: expected none with a list of texts, which has no file")
    pairs = "df[COLUMNS].values.tolist()"
    rows = [texts_of(row) for row in listed("texts", texts, "a name or a list of texts", pairs)]
    labels = checked_labels(labels, len(rows))
    if fault := name_fault(name):
        raise SettingsError(f"name: {fault}")
    columns = columns_of_rows(rows)
    if "classes" in options:
        options["labels"] = names_of_classes(options.pop("classes"))
    kind = options.get("type") or type_of_lists(len(columns), labels, options)
    own = TYPES.get(str(kind), TYPES["classification"])  # an unknown type is refused below
    stored: list[dict[str, Any]] = [dict(zip(columns, row, strict=True)) for row in rows]
    for row, label in zip(stored, labels, strict=True):
        row[LABEL] = None if label is None else own.cell(label, options)
    description = {"train": str(store_rows(folder, name, stored)), "type": kind}
    description |= {"text": list(columns), "label": [LABEL]}
    return described_lists(name, description | options)


def checked_labels(labels: Any, count: int) -> list[Any]:
    """Return the labels of lists, None for a missing one.

    Raise SettingsError for another number of labels than `count`.
    """
    found = listed("labels", () if labels is None else labels)
    found = [None if repr(label) in MISSING_REPRS else label for label in found]
    check_no_matrix(found)
    if len(found) != count:
        line = f"expected {count}, one for each text, found {len(found) or 'none'}"
        raise SettingsError(f"labels: {line}")
    return found


def columns_of_rows(rows: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the columns of one or two texts; raise SettingsError for rows with other numbers."""
    widths = sorted({len(row) for row in rows}) or [1]
    if len(widths) > 1 or widths[0] not in (1, 2):
        found = " and ".join(map(str, widths))
        raise SettingsError(f"texts: expected one or two in each row, found {found}")
    return TEXTS[: widths[0]]


def names_of_classes(classes: Any) -> str | list[Any]:
    """Return the argument `classes`: a text such as low|high, as in a description, or a list."""
    return classes if isinstance(classes, str) else [*map(to_text, listed("classes", classes))]


def described_lists(name: str, description: Mapping[str, Any]) -> TaskDescription:
    """Return the complete description of a task from lists; raise DescriptionError."""
    try:
        checked = checked_description(name, description)
        check_labels("classes", checked["labels"])
        described = complete_description(name, checked)
        if fault := TYPES[described.type].fault(described):
            raise DescriptionError(f"{name}: {fault}")
        return described
    except DescriptionError as error:  # the key `labels` is the argument `classes`
        line = str(error).replace(f"{name}: labels:", f"{name}: classes:")
        raise DescriptionError(line) from error


def listed(
    key: str, given: Any, expected: str = "a list", advice: str = "df[COLUMN].tolist()"
) -> list[Any]:
    """Return the elements of a list, an array or a column; raise SettingsError for others."""
    found = no_sequence(given, advice)
    if isinstance(given, str) or not isinstance(given, Iterable):
        found = short(given)
    if found is not None:
        raise SettingsError(f"{key}: expected {expected}, found {found}")
    return plain(list(given))


def store_rows(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Store rows as lines of JSON, in a file named after their checksum; return the file."""
    content = "".join(f"{json.dumps(row)}\n" for row in rows)
    file = folder / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:16]}.jsonl"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write_text(file, content)
    return file


def texts_of(row: Any) -> tuple[str, ...]:
    """Return a text or a pair of texts as a tuple; raise SettingsError for anything else."""
    texts = (row,) if isinstance(row, str) else row
    if not isinstance(texts, list | tuple) or not all(isinstance(one, str) for one in texts):
        raise SettingsError(f"texts: expected texts or pairs of texts, found {short(row)}")
    return tuple(texts)


def build_own_task(described: TaskDescription) -> Task:
    """Return the task of a description, with the kind and the head of its type."""
    parts = TYPES[described.type].build(described)
    return Task(
        name=described.name,
        kind=parts.kind,
        source=source_of(described, parts),
        build_head=parts.build_head,
        output=parts.output,
        joint=described.joint,
        texts=len(described.texts),
    )


def source_of(described: TaskDescription, parts: Parts) -> Source:
    """Return the files; without a dev file, the training file is split by `HashedSource`."""
    files = {"train": described.train, "dev": described.dev, "test": described.test}
    read = LabelledFiles(
        # Relative to the working directory, not to --data.
        files={
            split: str(Path(file).absolute()) for split, file in files.items() if file is not None
        },
        text_columns=described.texts,
        label_column=described.label,
        indicators=parts.indicators,
        separator=described.separator if described.label else None,
        parse_label=parts.parse_label,
        clean_text=str.strip,
        target_type=parts.target_type,
        id_column=described.id,
        quoted=described.quotes,
        comma=None,
        labelled_test=described.test_labels or described.dev is None,
        blank=parts.blank,
        lower_ids=False,
        skip_blank_texts=True,
        group_column=described.group,
    )
    return read if described.dev is not None else HashedSource(read, described.test is None)
