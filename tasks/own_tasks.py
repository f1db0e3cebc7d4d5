"""Own tasks from Python: lists, files, and columns of labels of one file."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from common.errors import SettingsError
from common.files import atomic_write_text
from common.settings import plain, short
from tasks.base import TaskOptions
from tasks.csv_files import Layout
from tasks.own_task import NAME, OwnTask, complete_task, own_task
from tasks.tables import to_text

TEXTS, LABEL = ("text", "other text"), "label"  # columns of a file of lists
MISSING_REPRS = ("None", "nan", "<NA>", "NaT")  # of missing labels; the last two are of pandas
OPTIONS = re.compile(r":(?=[a-z_]+=)")  # the end of the name of a column
COMMA = re.compile(r"(?<!\\),")


def task(
    first: str | Sequence[str] | Sequence[Sequence[str]],
    labels: Sequence[str | int | float | Sequence[str] | None] | None = None,
    *,
    name: str = "own",
    folder: str | Path = "runs/data",
    **options: Any,
) -> TaskOptions:
    """A task for `RunConfig(tasks=...)`; raise SettingsError or DataError of one line.

    Args:
        first: the name of a built-in task with its options (`task("sst", head="softmax")`), or of
            a task on own files with its keys (`task("mood", train="mood.csv", text="comment",
            label="stars")`); or a list of n texts or n pairs of texts, with `labels`.
        labels: n labels: classes, as texts or whole numbers; numbers, at least one of them a float;
            or n lists of labels, which may be empty. Floats are similarities of pairs; for texts,
            the type is inferred as from a file. A missing label, None or NaN, is a blank cell.
        name: the name of a task from lists.
        folder: the folder in which lists are stored as a file, named after its checksum, which the
            run reads.
        options: options of a built-in task, or the keys of docs/own-data.md. For lists, `classes`
            is the key `labels`: `classes=["low", "high"]`.
    """
    if not isinstance(first, str):
        return task_from_lists(first, labels, name, Path(folder).expanduser(), options)
    more = {} if labels is None else {"labels": labels}
    return complete_task({"name": first, **more, **options})


def task_from_lists(
    texts: Any, labels: Any, name: str, folder: Path, options: Mapping[str, Any]
) -> OwnTask:
    """Store lists of texts and labels as a file and return a task that reads it."""
    rows = [[one] if isinstance(one, str) else one for one in listed("texts", texts)]
    for row in rows:
        kinds = {type(one) for one in row} if isinstance(row, list | tuple) else {}
        if kinds != {str} or len(row) not in (1, 2) or len(row) != len(rows[0]):
            raise SettingsError(f"texts: expected texts or pairs of texts, found {short(row)}")
    found = [None if repr(one) in MISSING_REPRS else one for one in listed("labels", labels)]
    if len(found) != len(rows) or not rows:
        raise SettingsError(f"labels: expected one for each of {len(rows)}, found {len(found)}")
    marks = {to_text(one) for label in found if isinstance(label, list) for one in label}
    if marks and marks <= {"0", "1"}:
        names = "[[name for name, mark in zip(NAMES, row) if mark] for row in MATRIX]"
        raise SettingsError(f"labels: expected lists of labels, found a matrix: use {names}")
    columns, keys = TEXTS[: len(rows[0])], dict(options)
    if "classes" in keys:
        classes = keys.pop("classes")
        keys["labels"] = classes if isinstance(classes, str) else listed("classes", classes)
    types = {type(label) for label in found}
    if "labels" in keys or not types & {float, list, tuple}:
        keys.setdefault("type", "classification")
    elif float in types and len(columns) == 2 and type(None) not in types:
        keys.setdefault("type", "similarity")  # pandas has whole numbers beside None as floats, too
    # The keys are checked before a file is written.
    own = own_task({"name": name, "train": name, "text": columns, "label": LABEL, **keys})
    stored = [
        dict(zip((*columns, LABEL), (*row, label), strict=True))
        for row, label in zip(rows, found, strict=True)
    ]
    try:
        content = "".join(f"{json.dumps(row)}\n" for row in stored)
    except TypeError as error:
        raise SettingsError(f"labels: expected texts, numbers or lists, found: {error}") from error
    file = folder / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:16]}.jsonl"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write_text(file, content)
    return replace(own, train=str(file)).completed()


def listed(key: str, given: Any) -> list[Any]:
    """Return the elements of a list, an array or a column; raise SettingsError for others."""
    wrong = isinstance(given, str | Mapping | Set) or not isinstance(given, Iterable)
    if wrong or hasattr(given, "columns"):  # a DataFrame's elements are the names of its columns
        cure = "; of a DataFrame, use df[COLUMNS].values.tolist()"
        raise SettingsError(f"{key}: expected a list, found a {type(given).__name__}{cure}")
    return plain([*given])


def table_tasks(
    file: str | Path,
    *,
    text: str | Sequence[str] = (),
    labels: Sequence[str] | Mapping[str, Any] = (),
    **options: Any,
) -> list[OwnTask]:
    """Tasks for `RunConfig(tasks=...)`, one for each column of labels of a file.

    The rows of a single file are split by a hash: no row or equal text is on two sides. Raise
    SettingsError or DataError of one line.

    Args:
        file: a table, or a folder with train.csv and dev.csv or the like.
        text: the column of the texts; two columns for pairs.
        labels: the columns of labels, such as `"topic"` or `"tags:type=multi-label,separator=;"`,
            or `"NAME=COLUMN"` to name the task; or a mapping of columns to keys, such as
            `{"topic": {}, "stars": {"type": "regression"}}`.
        options: further keys of all tasks: `id`, `dev`, `test`, `quotes`.
    """
    several = [labels] if isinstance(labels, str) else labels
    pairs = several.items() if isinstance(several, Mapping) else map(parse_column, several)
    columns = [*pairs]
    if not columns:
        raise SettingsError(f"{file}: labels: expected a column or more, found none")
    keys = {"train": file, "text": text, **options}
    return [
        own_task({"name": name_of_column(column), **keys, "label": column, **more}).completed()
        for column, more in columns
    ]


def parse_column(text: str) -> tuple[str, dict[str, Any]]:
    """Return the column and the keys in `COLUMN:key=value,...` or `NAME=COLUMN:...`."""
    column, *options = OPTIONS.split(text, maxsplit=1)
    name, sign, rest = column.partition("=")
    named = {"name": name} if sign and NAME.fullmatch(name) else {}
    return rest if named else column, {**named, **keys_of("".join(options))}


def name_of_column(column: str) -> str:
    """Return a column as a name: in lower case, without accents, other characters as hyphens."""
    plain_text = unicodedata.normalize("NFKD", column.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9_]+", "-", plain_text).strip("-_")[:32]


def layout_keys(words: Sequence[str]) -> dict[str, str]:
    """Return the keys and values in words such as `quotes=no`, which say how a table is written."""
    given = {key: value for one in words for key, value in keys_of(one).items()}
    if unknown := given.keys() - (known := [one.name for one in fields(Layout)]):
        raise SettingsError(f"table: no key {min(unknown)!r}; there are {', '.join(known)}")
    return given


def keys_of(options: str) -> dict[str, str]:
    """Return the keys and values in `key=value,...`; a comma in a value is written `\\,`."""
    found = {}
    for part in filter(None, COMMA.split(options)):
        key, _, value = part.replace("\\,", ",").partition("=")
        if not value:
            raise SettingsError(f"expected key=value, found {part!r}")
        found[key] = value
    return found
