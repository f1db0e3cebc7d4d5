"""A task on a user's own files: what the user says about it, and all that a run stores of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from common.errors import SettingsError
from common.settings import Name, build, methods, short
from common.text import first_names, suggestion
from tasks.base import Pair, Task, TaskOptions
from tasks.built_in import TASK_NAMES, TASKS
from tasks.csv_files import Layout
from tasks.metrics import OVERALL_KEYS
from tasks.own_types import LEARNT, TypeName, hints, infer_type, learnt, parts, same
from tasks.readers import LabelledFiles, plain
from tasks.splits import by_hash, split_file
from tasks.tables import SPLITS, TABLES, DataError, Table, read_table, to_text

Bound = Annotated[float, Meta(gt=-1e9, lt=1e9)]  # of the scale of similarities
# A row of a prediction file is a line with ' , ' between id and labels.
WRITTEN = "without ' , ' and control characters"
Written = Annotated[str, Meta(pattern=r"^(?!.* , )[^\x00-\x1f\x7f]+$", description=WRITTEN)]
FILES = ("train", "dev", "test")
NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
# Names of other files and metrics, and of attributes of nn.ModuleDict, which holds the heads.
RESERVED = re.compile(
    f"{'|'.join(TASK_NAMES)}|para|{'|'.join(OVERALL_KEYS)}|apply|buffers|children|clear|compile|cpu|"
    "cuda|double|eval|float|forward|half|items|keys|modules|parameters|pop|to|train|training|type|"
    "update|values"
)


class OwnTask(TaskOptions, Layout):
    """A task on a user's own files, in CSV, TSV, JSON Lines or Parquet.

    The fields are the keys with which a user describes it; `completed` reads from the files what is
    missing. With several label columns, each is a label with the name of its column.
    """

    type: TypeName | None = None
    train: Name = ""  # file, or folder with train.csv, dev.csv and test.csv
    text: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=2)] = ()  # columns
    label: Annotated[tuple[Name, ...], Meta(min_length=1)] = ()  # columns
    dev: Name | None = None  # file; without one, parts of train are dev and test
    test: Name | None = None  # file, with or without labels
    id: Name | None = None  # column; default: row numbers
    labels: tuple[Written, ...] = ()  # the classes in the order of their numbers
    low: Bound | None = None  # of the similarities
    high: Bound | None = None
    separator: Written | None = None  # of several labels in a cell
    blank: tuple[Name, ...] = ()  # cells of labels that mean none
    pair: Pair = "bi"
    split: Name | None = None  # column with train, dev and test
    mean: float | None = None  # of the numbers in train
    deviation: Annotated[float, Meta(gt=0)] | None = None
    test_labels: bool | None = None  # None: before the files are read
    name: str = ""  # type: ignore[misc] # not of the class, as for built-in tasks

    def faults(self) -> Iterator[str]:
        yield from Layout.faults(self)
        reserved = RESERVED.fullmatch(self.name)
        if reserved or not NAME.fullmatch(self.name):
            what = "1 to 32 lower-case letters, digits, - and _, the first a letter"
            found = short(self.name) + (", which is reserved" if reserved else "")
            yield f"a task's name has {what}, found {found}; choose another name"
        columns = [*self.text, *self.label]
        if twice := [one for one in columns if columns.count(one) > 1]:
            yield f"column {twice[0]!r} is there twice, as text or label"
        if self.labels and self.type in ("regression", "similarity"):
            yield f"labels: {self.type} does not have it"
        if self.type == "similarity" and len(self.text) == 1:
            yield "text: similarity needs 2 columns, found 1"
        if len(self.label) > 1 and self.type not in (None, "multi-label"):
            yield f"label: {self.type} has one column, found {len(self.label)}"
        if len(self.label) > 1 and self.labels not in ((), self.label):
            yield "labels: several label columns have the names of the labels"
        if self.low is not None and self.high is not None and self.low >= self.high:
            yield f"low: expected less than high, {self.high:g}, found {self.low:g}"
        if len(self.labels) == 1 or len({*map(same, self.labels)}) < len(self.labels):
            yield f"labels: expected two or more, each once, found {first_names(self.labels)}"

    @property
    def mark(self) -> str:
        """Return what separates several labels in a cell."""
        return self.separator or "|"

    @property
    def files(self) -> dict[str, str]:
        """Return the file of each split; of a single file, dev and test are parts."""
        rest = self.train if self.dev is None else None
        every = {"train": self.train, "dev": self.dev or rest, "test": self.test or rest}
        return {split: file for split, file in every.items() if file is not None}

    @property
    def known(self) -> dict[str, Any]:
        """Return what the training file says, or is to say, of the labels of this type."""
        keys = LEARNT[self.type] if self.type else ("type",)
        return {key: getattr(self, key) for key in keys}

    @property
    def outputs(self) -> dict[str, Any]:
        return {"texts": len(self.text), "type": self.type, **self.known}

    @property
    def complete(self) -> bool:
        """Return whether `completed` has read the files, for this type."""
        return self.test_labels is not None and not {None, ()} & {*self.known.values()}

    def completed(self) -> OwnTask:
        """Return the task with what its files say: the type, classes, scale, mean and so on.

        Raise DataError, with file and line, for files that cannot be read.
        """
        found = self if self.dev or self.test else replace(self, **files_in(self.train))
        table = read_table(Path(found.train), self)
        found = found.with_split(table)
        lists = any(isinstance(row.get(one), list) for _, row in table.rows for one in self.label)
        several = lists or len(self.label) > 1 or self.separator is not None
        may_have = several or self.type == "multi-label"
        cells = self.cells(table, may_have)
        try:
            if not cells:
                raise ValueError("expected labels, found none")
            if self.type is None:
                texts = [cell for _, cell in cells]
                one = "multi-label" if several else infer_type(texts, len(self.text))
                found = replace(found, type=one)
            given = {key: one for key, one in found.known.items() if one not in (None, ())}
            found = replace(found, **{**learnt(found, cells), **given})
        except ValueError as error:
            raise DataError(f"{found.train}: {self.name}: {error}") from error
        test = read_table(Path(found.test), self) if found.test else None
        labelled = False
        if test is not None and {*self.label} <= {*test.columns}:
            none = {plain("-"), plain("-1")} - {*map(plain, found.labels)}
            labelled = any(plain(cell) not in none for _, cell in self.cells(test, may_have))
        return replace(found, test_labels=labelled)

    def cells(self, table: Table, lists: bool) -> list[tuple[int, str]]:
        """Return (line, cell) of the labels in a table that are not blank."""
        rows = table.fields(self.label, dict.fromkeys(self.label, self.mark) if lists else {})
        none = {"", *map(plain, self.blank)}
        cells = [(line, cell.strip()) for line, row in rows for cell in row.values()]
        return [(line, cell) for line, cell in cells if plain(cell) not in none]

    def with_split(self, table: Table) -> OwnTask:
        """Return the task with the splits that a column of its only file names."""
        free = {*table.columns} - {*self.text, *self.label}
        alone = "split" in free and not self.dev and not self.test
        column = self.split or ("split" if alone else None)
        if column is None:
            return self
        names = {row[column].strip().lower() for _, row in table.fields([column])}
        if not self.split and "train" not in names:
            return self
        files = {SPLITS.get(name): self.train for name in names}
        dev, test = self.dev or files.get("dev"), self.test or files.get("test")
        return replace(self, split=column, dev=dev, test=test)

    def lines(self) -> Iterator[str]:
        """Yield what the task predicts from which columns."""
        texts, columns = (first_names(list(map(repr, one))) for one in (self.text, self.label))
        what = ", ".join(f"{key} {one:.4g}" for key, one in self.known.items() if key != "labels")
        if self.labels:
            what = "classes" if self.type == "classification" else "labels"
            what = f"{len(self.labels)} {what}: {first_names(self.labels, 10)}"
        yield f"{self.type} of {texts}, label {columns}: {what}"
        if self.split:
            yield f"train, dev and test are named in column {self.split!r}"
        if self.low == -1 and (self.high or 0) > 1:
            yield "-1 is a number like any other; blank=-1 leaves such rows out"
        if len(self.label) == 1:
            yield from hints(self.labels)

    def build(self) -> Task:
        kind, head, output, parse = parts(self)
        files = LabelledFiles(
            # Relative to the working directory, not to --data.
            files=({split: str(Path(file).absolute()) for split, file in self.files.items()},),
            text_columns=self.text,
            label_columns=self.label,
            separator=self.mark if self.type == "multi-label" and len(self.label) == 1 else None,
            parse_label=parse,
            clean_text=str.strip,
            id_column=self.id,
            layout=self,
            split_column=self.split,
            in_train=tuple(split for split in ("dev", "test") if not getattr(self, split)),
            labelled_test=bool(self.test_labels) or self.test is None,
            lower_ids=False,
            skip_blank_texts=True,
            blank=self.blank,
        )
        rule = partial(by_hash, test=self.test is None)
        source = split_file(files, rule) if self.dev is None else files
        joint, texts = self.pair == "joint", len(self.text)
        return Task(self.name, kind, source, head, output, joint=joint, texts=texts)


def as_typed(key: str, value: Any) -> Any:
    """Return a value of a flag or a YAML file, or of Python, as the class has it."""
    if key not in ("text", "label", "labels", "blank"):
        return value
    if isinstance(value, str):
        value = value.split("|") if key in ("labels", "blank") else [value]
    if not isinstance(value, list | tuple):
        return value
    texts = map(to_text, value)  # labels without spaces around them, as cells
    cells = key in ("labels", "blank")
    return [one.strip() if cells and isinstance(one, str) else one for one in texts]


def tasks_by_name(given: Any) -> dict[str, TaskOptions | dict[str, Any]]:
    """Return the tasks of a configuration by name, as objects or as their keys.

    They are a list of names, objects and mappings with `name`, or a mapping of names to keys. Raise
    SettingsError for other content.
    """
    names: list[str] = []
    if isinstance(given, Mapping):
        names, every = [*given], [(name, one or {}) for name, one in given.items()]
        given = [{"name": name, **one} if isinstance(one, Mapping) else one for name, one in every]
    if not isinstance(given, list | tuple):
        raise SettingsError(f"tasks: expected several, such as ['sst'], found {short(given)}")
    found: dict[str, TaskOptions | dict[str, Any]] = {}
    for one in given:
        keys = dict(one) if isinstance(one, Mapping) else {"name": one}
        name = one.name if isinstance(one, TaskOptions) else keys.get("name")
        if not isinstance(name, str) or name in found:
            wrong = f"{name} is there twice" if isinstance(name, str) else f"no name: {short(one)}"
            raise SettingsError(f"tasks: {wrong}")
        found[name] = one if isinstance(one, TaskOptions) else keys
    for key, name in zip(names, found, strict=False):
        if key != name:
            raise SettingsError(f"tasks: {key} has the name {name}; write the same name twice")
    return found


def complete_task(one: TaskOptions | Mapping[str, Any]) -> TaskOptions:
    """Return a task from its name and keys; one on own files is completed by what they say."""
    if isinstance(one, Mapping):
        known, name = {**TASKS, **methods(TaskOptions)}, one["name"]
        if name in known and "train" not in one:
            return build("task", TaskOptions, one)
        if one.keys() == {"name"}:
            raise SettingsError(f"tasks: no task {name!r}; there are {', '.join(known)}")
        one = own_task(one)
    return one.completed() if isinstance(one, OwnTask) and not one.complete else one


def own_task(keys: Mapping[str, Any]) -> OwnTask:
    """Return a task with these keys, before its files are read."""
    known = [one.name for one in fields(OwnTask)]
    for key in keys.keys() - {*known}:
        names = f"there are {', '.join(known)}{suggestion(key, known)}"
        raise SettingsError(f"{keys['name']}: no key {key!r}; {names}")
    try:
        return OwnTask(**{key: as_typed(key, value) for key, value in keys.items()})
    except SettingsError as error:
        raise SettingsError(f"{keys['name']}: {error}") from error


def own_tasks_of(tasks: Any) -> dict[str, OwnTask]:
    """Return the tasks of a configuration that are on a user's own files, by name."""
    every = tasks_by_name(tasks).values()
    own = (complete_task(one) for one in every if isinstance(one, TaskOptions) or "train" in one)
    return {one.name: one for one in own if isinstance(one, OwnTask)}


def files_in(place: str) -> dict[str, str]:
    """Return the files of a folder, such as `train.csv`, by split; a file is train."""
    folder = Path(place)
    if not folder.is_dir():
        return {"train": place}
    found = {
        split: str(folder / f"{name}{ending}")
        for name, split in reversed(SPLITS.items())
        for ending in TABLES[::-1]
        if (folder / f"{name}{ending}").exists()
    }
    if "train" not in found:
        raise DataError(f"{folder}: expected a file train.csv or the like, found none")
    return found
