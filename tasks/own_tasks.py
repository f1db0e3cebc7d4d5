"""Own tasks from the settings of a run, from flags, and from Python: lists and files."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from common.errors import SettingsError, suggestion
from common.files import atomic_write_text
from common.settings import build, methods, plain, short
from tasks.base import TaskOptions
from tasks.built_in import TASKS
from tasks.csv_files import Layout
from tasks.own_task import NAME, OwnTask
from tasks.tables import to_text

TEXTS, LABEL = ("text", "other text"), "label"  # columns of a file of lists
MISSING_REPRS = ("None", "nan", "<NA>", "NaT")  # of missing labels; the last two are of pandas
OPTIONS = re.compile(r":(?=[a-z_]+=)")  # the end of the name of a column
COMMA = re.compile(r"(?<!\\),")


def tasks_by_name(given: Any) -> dict[str, Any]:
    """Return the tasks of a configuration by name, as objects or as their keys.

    They are a list of names, objects and mappings with `name`, or a mapping of names to keys.
    """
    if isinstance(given, Mapping):
        pairs = [(name, one or {}) for name, one in given.items()]
        for name, one in pairs:
            if isinstance(one, Mapping) and one.get("name", name) != name:
                raise SettingsError(f"tasks: {name} has another name inside, {one['name']}")
        given = [{**one, "name": n} if isinstance(one, Mapping) else one for n, one in pairs]
    if not isinstance(given, list | tuple):
        raise SettingsError(f"tasks: give a list, such as ['sst'], found {short(given)}")
    found: dict[str, Any] = {}
    for one in given:
        keys = dict(one) if isinstance(one, Mapping) else {"name": one}
        name = one.name if isinstance(one, TaskOptions) else keys.get("name")
        if not isinstance(name, str) or name in found:
            wrong = f"{name} is named twice" if isinstance(name, str) else f"no name: {short(one)}"
            raise SettingsError(f"tasks: {wrong}")
        found[name] = one if isinstance(one, TaskOptions) else keys
    return found


def complete_task(one: TaskOptions | Mapping[str, Any]) -> TaskOptions:
    """Return a task from its name and keys; one on own files is completed by what they say."""
    if isinstance(one, Mapping):
        known, name = {**TASKS, **methods(TaskOptions)}, one["name"]
        if name in known and "train" not in one:
            return build("task", TaskOptions, one)
        if one.keys() == {"name"}:
            raise SettingsError(f"tasks: no task {name!r}; choose from {', '.join(known)}")
        one = own_task(one)
    return one.completed() if isinstance(one, OwnTask) else one


def own_task(keys: Mapping[str, Any]) -> OwnTask:
    """Return a task with these keys, before its files are read."""
    known = [one.name for one in fields(OwnTask)]
    for key in keys.keys() - {*known}:
        names = f"choose from {', '.join(known)}{suggestion(key, known)}"
        raise SettingsError(f"{keys['name']}: no key {key!r}; {names}")
    given = dict(keys)
    for key in given.keys() & {"text", "label", "labels", "blank"}:
        cells = key in ("labels", "blank")
        if isinstance(given[key], str):
            given[key] = given[key].split("|") if cells else [given[key]]
        if isinstance(given[key], list | tuple):
            texts = map(to_text, given[key])  # labels without spaces around them, as cells
            given[key] = [n.strip() if cells and isinstance(n, str) else n for n in texts]
    try:
        return OwnTask(**given)
    except SettingsError as error:
        raise SettingsError(f"{keys['name']}: {error}") from error


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
            or n lists of labels. A missing label is None or NaN.
        name: the name of a task from lists.
        folder: the folder of the file, named after its checksum, in which lists are stored.
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
    rows = [[n] if isinstance(n, str) else listed("texts", n) for n in listed("texts", texts)]
    found = [None if repr(one) in MISSING_REPRS else one for one in listed("labels", labels)]
    columns = TEXTS[: len(rows[0])] if rows else ()
    for row in rows:
        if {*map(type, row)} != {str} or len(row) != len(columns):
            raise SettingsError(f"texts: expected texts or pairs of texts, found {short(row)}")
    if len(found) != len(rows) or not rows:
        raise SettingsError(f"labels: expected {len(rows)}, one for each text, found {len(found)}")
    marks = {to_text(one) for label in found if isinstance(label, list) for one in label}
    if marks and marks <= {"0", "1"}:
        names = "[[name for name, mark in zip(NAMES, row) if mark] for row in MATRIX]"
        raise SettingsError(f"labels: give lists of labels, not a matrix: {names}")
    keys = {"labels" if key == "classes" else key: plain(one) for key, one in options.items()}
    types = {*map(type, found)}
    if "labels" in keys or not types & {float, list, tuple}:
        keys.setdefault("type", "classification")
    elif float in types and len(columns) == 2 and type(None) not in types:
        keys.setdefault("type", "similarity")  # pandas has whole numbers beside None as floats, too
    # The keys are checked before a file is written.
    own = own_task({"name": name, "train": name, "text": columns, "label": LABEL, **keys})
    stored = [(*row, label) for row, label in zip(rows, found, strict=True)]
    lines = [json.dumps(dict(zip((*columns, LABEL), one, strict=True))) for one in stored]
    content = "".join(f"{line}\n" for line in lines)
    file = folder / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:16]}.jsonl"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write_text(file, content)
    return replace(own, train=str(file)).completed()


def listed(key: str, given: Any) -> list[Any]:
    """Return the elements of a list, an array or a column; raise SettingsError for others."""
    # The elements of a DataFrame are the names of its columns, those of a set have no order.
    if (
        isinstance(given, str | Mapping | Set)
        or not hasattr(given, "__iter__")
        or hasattr(given, "columns")
    ):
        cure = "; of a DataFrame, use df[COLUMNS].values.tolist()"
        raise SettingsError(f"{key}: expected a list, found a {type(given).__name__}{cure}")
    return plain([*given])


def table_tasks(
    file: str | Path,
    *,
    text: str | Sequence[str] = (),
    labels: str | Sequence[str] = (),
    **options: Any,
) -> list[OwnTask]:
    """Tasks for `RunConfig(tasks=...)`, one for each column of labels of a file.

    The rows of a single file are split by a hash: no row or equal text is on two sides.

    Args:
        file: a table, or a folder with train.csv and dev.csv or the like.
        text: the column of the texts; two columns for pairs.
        labels: the columns of labels: `"topic"`, `"tags:type=multi-label"`, `"NAME=COLUMN"`.
        options: further keys of all tasks: `id`, `dev`, `test`, `quotes`.
    """
    columns = [parse_column(one) for one in ([labels] if isinstance(labels, str) else labels)]
    for key, several in (("labels", columns), ("text", text)):
        if not several:
            raise SettingsError(f"{key}: name a column of {file}")
    given = {"train": file, "text": text, **options}
    return [own_task({**given, **keys}).completed() for keys in columns]


def parse_column(text: str) -> dict[str, str]:
    """Return the keys in `COLUMN:key=value,...` or `NAME=COLUMN:...`; NAME follows from COLUMN."""
    column, *options = OPTIONS.split(text, maxsplit=1)
    name, sign, rest = column.partition("=")
    if sign and NAME.fullmatch(name):
        column = rest
    else:
        letters = unicodedata.normalize("NFKD", column.casefold()).encode("ascii", "ignore")
        name = re.sub(r"[^a-z0-9_]+", "-", letters.decode()).strip("-_")[:32]
    return {"name": name, "label": column, **keys_of("".join(options))}


def keys_of(options: str) -> dict[str, str]:
    """Return the keys and values in `key=value,...`; a comma in a value is written `\\,`."""
    parts = filter(None, COMMA.split(options))
    return dict(key_and_value(part.replace("\\,", ",")) for part in parts)


def key_and_value(text: str, where: str = "") -> tuple[str, str]:
    """Return the parts of `key=value`; `where` begins the error for other texts."""
    key, _, value = text.partition("=")
    if not value:
        raise SettingsError(f"{where}expected key=value, found {text!r}")
    return key, value


def layout_keys(words: Sequence[str]) -> dict[str, str]:
    """Return the keys and values in words such as `quotes=no`, which say how a table is written."""
    given = dict(key_and_value(one, "table: ") for one in words)
    if unknown := given.keys() - (known := [one.name for one in fields(Layout)]):
        raise SettingsError(f"table: no key {min(unknown)!r}; choose from {', '.join(known)}")
    return given
