"""A task on a user's own files: what the user says about it, and all that a run stores of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from common.errors import SettingsError, is_unsafe
from common.repeats import repeated
from common.settings import Name, build, convert, hints_of_fields, methods, short
from common.suggestions import suggestion
from common.text import first_names
from tasks.base import Pair, Task, TaskOptions
from tasks.built_in import TASK_NAMES, TASKS
from tasks.labelled_files import LabelledFiles
from tasks.metrics import OVERALL_KEYS
from tasks.own_types import LEARNT, PARTS, SEPARATOR, TypeName, infer_type, learnt
from tasks.splits import SplitFile, by_hash
from tasks.tables import TABLES, DataError, columns_of, holds_lists, rows_by_name, to_text

Bound = Annotated[float, Meta(gt=-1e9, lt=1e9)]  # of the scale of similarities
Separator = Annotated[str, Meta(pattern=r"^(?!.* , )[^\x00-\x1f\x7f]+$")]
FILES = ("train", "dev", "test")
IN_FOLDER = {"train": ("train",), "dev": ("dev", "validation", "valid"), "test": ("test",)}
MOST_LABELS = 1000
NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
# Names of other files and metrics, and of attributes of nn.ModuleDict, which holds the heads.
RESERVED = re.compile(
    f"{'|'.join(TASK_NAMES)}|para|{'|'.join(OVERALL_KEYS)}|apply|buffers|children|clear|compile|cpu|"
    "cuda|double|eval|float|forward|half|items|keys|modules|parameters|pop|to|train|training|type|"
    "update|values"
)


class OwnTask(TaskOptions):
    """A task on a user's own files, in CSV, TSV, JSON Lines or Parquet.

    The fields are the keys with which a user describes it; `completed` reads from the files what is
    missing. With several label columns, each is a label with the name of its column.
    """

    type: TypeName | None = None
    train: str = ""  # file, or folder with train.csv, dev.csv and test.csv
    text: tuple[Name, ...] = ()  # columns, two for pairs
    label: tuple[Name, ...] = ()  # columns
    dev: Name | None = None  # file; without one, parts of train are dev and test
    test: Name | None = None  # file, with or without labels
    id: Name | None = None  # column; default: row numbers
    labels: tuple[str, ...] = ()  # the classes in the order of their numbers
    low: Bound | None = None  # of the similarities
    high: Bound | None = None
    separator: Separator | None = None  # of several labels in a cell
    blank: Literal["none", "unknown"] = "none"  # a blank cell has no label, or is skipped
    pair: Pair = "bi"
    quotes: bool = True  # False: ordinary characters between tabs
    group: Name | None = None  # column; rows with the same value are in the same split
    mean: float | None = None  # of the numbers in train
    deviation: Annotated[float, Meta(gt=0)] | None = None
    test_labels: bool = False
    name: str = ""  # type: ignore[misc] # not of the class, as for built-in tasks

    def __post_init__(self) -> None:
        for key, hint in hints_of_fields(OwnTask).items():
            value = as_typed(key, getattr(self, key))
            value = convert(f"{self.name}: {key}", hint, value)
            object.__setattr__(self, key, value)
        for fault in self.faults():
            raise SettingsError(f"{self.name}: {fault}")

    def faults(self) -> Iterator[str]:
        reserved = RESERVED.fullmatch(self.name)
        if reserved or not NAME.fullmatch(self.name):
            what = "1 to 32 lower-case letters, digits, - and _, the first a letter"
            found = short(self.name) + (", which is reserved" if reserved else "")
            yield f"a task's name has {what}, found {found}; NAME=... chooses another"
        if missing := [key for key in ("train", "text", "label") if not getattr(self, key)]:
            yield f"needs {', '.join(missing)}"
        columns = [*self.text, *self.label, *([self.group] if self.group else [])]
        for column in repeated(columns):
            yield f"column {column!r} is there twice, as text, label or group"
        if len(self.text) > 2 or (self.type == "similarity" and len(self.text) == 1):
            wanted = "2" if self.type == "similarity" else "1 or 2"
            yield f"text: {self.type} needs {wanted} columns, found {len(self.text)}"
        if len(self.label) > 1 and self.type not in (None, "multi-label"):
            yield f"label: {self.type} has one column, found {len(self.label)}"
        if len(self.label) > 1 and self.labels not in ((), self.label):
            yield "labels: several label columns have the names of the labels"
        if self.pair == "joint" and len(self.text) < 2:
            yield "pair: joint needs two text columns"
        if self.group is not None and self.dev is not None:
            yield "group: it splits a single file, found also a file for dev"
        if self.low is not None and self.high is not None and self.low >= self.high:
            yield f"low: expected less than high, {self.high:g}, found {self.low:g}"
        if self.labels and not 1 < len(self.labels) <= MOST_LABELS:
            found = f"{len(self.labels):,}, such as {short(self.labels[0])}"
            yield f"labels: expected two or more, at most {MOST_LABELS:,}, found {found}"
        for label in repeated(self.labels):
            yield f"labels: expected each once, found {label!r} twice"
        # A row of a prediction file is a line with ' , ' between id and label.
        separators = [self.separator] if self.separator and self.type == "multi-label" else []
        marks = (" , ", *separators)
        for label in self.labels:
            if not label or any(map(is_unsafe, label)) or any(one in label for one in marks):
                names = " or ".join(map(repr, marks))
                yield f"labels: expected none with {names}, or blank, found {short(label)}"

    @property
    def files(self) -> dict[str, str]:
        """Return the files of the splits that have one."""
        every = {split: getattr(self, split) for split in FILES}
        return {split: file for split, file in every.items() if file is not None}

    @property
    def outputs(self) -> dict[str, Any]:
        keys = ("type", "labels", "low", "high", "mean", "deviation")
        return {"texts": len(self.text), **{key: getattr(self, key) for key in keys}}

    @property
    def lacks(self) -> list[str]:
        """Return the keys that `completed` reads from the labels."""
        needed = ("type",) if self.type is None else LEARNT[self.type]
        return [key for key in needed if getattr(self, key) in (None, ())]

    def completed(self) -> OwnTask:
        """Return the task with what its files say: the type, classes, scale, mean and so on.

        Raise DataError, with file and line, for files that cannot be read.
        """
        found = self if self.dev or self.test else replace(self, **files_in(self.train))
        for split, file in found.files.items():
            if not Path(file).exists():
                raise DataError(f"{file}: expected the file {split} of {self.name}, found none")
        try:
            if found.lacks and next(found.cells(), None) is None:
                raise ValueError("expected labels, found none")
            if found.type is None:
                found = replace(found, **found.inferred())
            if found.lacks:
                found = replace(found, **learnt(found))
        except SettingsError as error:
            raise DataError(f"{found.train}: {error}") from error
        except DataError:
            raise
        except ValueError as error:
            raise DataError(f"{found.train}: {self.name}: {error}") from error
        if found.test is not None:
            columns = columns_of(Path(found.test), found.quotes)
            found = replace(found, test_labels={*found.label} <= {*columns})
        return found

    def inferred(self) -> dict[str, str]:
        """Return the type that follows from the labels."""
        if len(self.label) > 1 or self.separator is not None:
            return {"type": "multi-label"}
        lists = holds_lists(Path(self.train), self.label[0])
        return infer_type(Counter(cell for _, cell in self.cells()), len(self.text), lists)

    def cells(self) -> Iterator[tuple[int, str]]:
        """Yield (line, cell) of the labels of train that are not blank; lists are joined."""
        lists = {}
        if self.type in (None, "multi-label"):
            lists = dict.fromkeys(self.label, self.separator or SEPARATOR)
        rows = rows_by_name(Path(self.train), self.label, self.quotes, lists=lists)
        for line, row in rows:
            yield from ((line, cell) for name in self.label if (cell := row[name].strip()))

    def lines(self) -> Iterator[str]:
        """Yield what the task predicts from which columns, and a notice about doubtful labels."""
        texts, columns = (first_names(list(map(repr, one))) for one in (self.text, self.label))
        if self.labels:
            classes = self.type == "classification"
            what = f"{len(self.labels)} {'classes' if classes else 'labels'}: "
            what += first_names(self.labels, 10)
            if classes and len(self.labels) == 2:
                what += f"; f1 is that of {self.labels[1]}"
        else:
            keys = LEARNT[self.type or "regression"]
            what = ", ".join(f"{key} {getattr(self, key):.4g}" for key in keys)
        yield f"{self.type} of {texts}, label {columns}: {what}"
        if self.type == "multi-label" and len(self.label) == 1:
            for mark in ",;|/":
                if found := [label for label in self.labels if mark in label]:
                    key = f"separator={mark}".replace(",", "\\,")
                    yield f"labels contain {mark!r}, such as {found[0]!r}; {key} splits them"

    def build(self) -> Task:
        assert self.type is not None, "a complete task has a type"
        kind, head, output, parse, target_type = PARTS[self.type](self)
        columns, several = len(self.label) > 1, self.type == "multi-label"
        files = LabelledFiles(
            # Relative to the working directory, not to --data.
            files=({split: str(Path(file).absolute()) for split, file in self.files.items()},),
            text_columns=self.text,
            label_columns=self.label,
            separator=self.separator if several and not columns else None,
            parse_label=parse,
            clean_text=str.strip,
            target_type=target_type,
            id_column=self.id,
            quoted=self.quotes,
            labelled_test=self.test_labels or (self.dev is None and self.test is None),
            blank=() if several and self.blank == "none" else ("",),
            lower_ids=False,
            skip_blank_texts=True,
            group_column=self.group,
        )
        rule = partial(by_hash, test=self.test is None)
        held = ("dev", "test") if self.test is None else ("dev",)
        source = SplitFile(files, rule, held) if self.dev is None else files
        joint, texts = self.pair == "joint", len(self.text)
        return Task(self.name, kind, source, head, output, joint=joint, texts=texts)


def as_typed(key: str, value: Any) -> Any:
    """Return a value of a flag or a YAML file, or of Python, as the class has it."""
    if key == "quotes" and value in ("yes", "no"):
        return value == "yes"
    if key in ("text", "label", "labels"):
        if isinstance(value, str):
            value = value.split("|") if key == "labels" else [value]
        if isinstance(value, list | tuple):
            texts = [to_text(one) for one in value]
            strips = key == "labels"  # as cells; the name of a column may end with a space
            return [one.strip() if strips and isinstance(one, str) else one for one in texts]
    return value


def tasks_by_name(given: Any) -> dict[str, TaskOptions | dict[str, Any]]:
    """Return the tasks of a configuration by name, as objects or as their keys.

    They are a list of names, objects and mappings with `name`, or a mapping of names to keys. Raise
    SettingsError for other content.
    """
    if isinstance(given, Mapping):
        every = {n: {} if one is None else one for n, one in given.items()}
        given = [
            {**one, "name": n} if isinstance(one, Mapping) else one for n, one in every.items()
        ]
    if not isinstance(given, list | tuple):
        raise SettingsError(f"tasks: expected several, such as ['sst'], found {short(given)}")
    found: dict[str, TaskOptions | dict[str, Any]] = {}
    for one in given:
        keys = dict(one) if isinstance(one, Mapping) else {"name": one}
        name = one.name if isinstance(one, TaskOptions) else keys.get("name")
        if not isinstance(name, str) or name in found:
            wrong = f"{name} is there twice" if name in found else f"no name: {short(one)}"
            raise SettingsError(f"tasks: {wrong}")
        found[name] = one if isinstance(one, TaskOptions) else keys
    return found


def complete_task(one: TaskOptions | Mapping[str, Any]) -> TaskOptions:
    """Return a task from its name and keys; one on own files is completed by what they say."""
    if isinstance(one, Mapping):
        known, name = {**TASKS, **methods(TaskOptions)}, one["name"]
        if name in known and "train" not in one:
            return build("tasks", TaskOptions, one)
        if one.keys() == {"name"}:
            raise SettingsError(f"tasks: no task {name!r}; there are {', '.join(known)}")
        one = own_task(name, {key: value for key, value in one.items() if key != "name"})
    return one.completed() if isinstance(one, OwnTask) and one.lacks else one


def own_tasks_of(tasks: Any) -> dict[str, OwnTask]:
    """Return the tasks of a configuration that are on a user's own files, by name."""
    own = (
        one if isinstance(one, TaskOptions) else complete_task(one)
        for one in tasks_by_name(tasks).values()
        if isinstance(one, TaskOptions) or "train" in one
    )
    return {one.name: one for one in own if isinstance(one, OwnTask)}


def own_task(name: str, given: Any) -> OwnTask:
    """Return a task with these keys; raise SettingsError for others."""
    if not isinstance(given, Mapping):
        raise SettingsError(f"{name}: expected keys such as train, found {short(given)}")
    known = [one.name for one in fields(OwnTask) if one.name != "name"]
    for key in given.keys() - {*known}:
        names = ", ".join(known)
        raise SettingsError(f"{name}: no key {key!r}; there are {names}{suggestion(key, known)}")
    return OwnTask(name=name, **given)


def files_in(place: str) -> dict[str, str]:
    """Return the files of a folder, such as `train.csv`, by split; a file is train."""
    folder = Path(place)
    if not folder.is_dir():
        return {"train": place}
    found = {
        split: str(folder / f"{name}{ending}")
        for split, names in IN_FOLDER.items()
        for name in reversed(names)
        for ending in TABLES[::-1]
        if (folder / f"{name}{ending}").exists()
    }
    if "train" not in found:
        raise DataError(f"{folder}: expected a file train.csv or the like, found none")
    return found
