"""A task on a user's own files: what the user says about it, and all that a run stores of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from common.errors import SettingsError, is_unsafe
from common.repeats import repeated
from common.settings import Name, as_json, convert, default_of, hints_of_fields, short
from common.suggestions import suggestion
from common.text import first_names
from tasks.base import Task
from tasks.label_kinds import infer_type
from tasks.labelled_files import LabelledFiles
from tasks.metrics import OVERALL_KEYS
from tasks.own_types import SEPARATOR, TYPES, OwnType, TypeName
from tasks.registry import TASK_NAMES, Pair, TargetType, TaskOptions
from tasks.splits import HashedSource
from tasks.tables import columns_of, holds_lists, rows_by_name
from tasks.text_files import DataError, to_text

Bound = Annotated[float, Meta(gt=-1e9, lt=1e9)]  # of the scale of similarities
Separator = Annotated[str, Meta(pattern=r"^(?!.* , )[^\x00-\x1f\x7f]+$")]
FILES = ("train", "dev", "test")
IN_FOLDER = {"train": ("train",), "dev": ("dev", "validation", "valid"), "test": ("test",)}
ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
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
        if self.texts not in self.own.texts:
            wanted = " or ".join(map(str, self.own.texts))
            yield f"text: {self.type} needs {wanted} columns, found {self.texts}"
        if len(self.label) > 1 and self.type not in (None, "multi-label"):
            yield f"label: {self.type} has one column, found {len(self.label)}"
        if len(self.label) > 1 and self.labels not in ((), self.label):
            yield "labels: several label columns have the names of the labels"
        if self.joint and self.texts < 2:
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
        marks = (" , ", *([self.separator] if self.separator and self.predicts == "labels" else []))
        for label in self.labels:
            if not label or any(map(is_unsafe, label)) or any(one in label for one in marks):
                names = " or ".join(map(repr, marks))
                yield f"labels: expected none with {names}, or blank, found {short(label)}"

    @property
    def own(self) -> OwnType:
        """Return the type; an unknown one may have one text or two, as classification has."""
        return TYPES[self.type or "classification"]

    @property
    def predicts(self) -> TargetType:  # type: ignore[override]
        return self.own.predicts

    @property
    def main_metric(self) -> str:  # type: ignore[override]
        return self.own.main_metric

    @property
    def texts(self) -> int:  # type: ignore[override]
        return len(self.text)

    @property
    def files(self) -> dict[str, str]:
        """Return the files of the splits that have one."""
        every = {split: getattr(self, split) for split in FILES}
        return {split: file for split, file in every.items() if file is not None}

    @property
    def outputs(self) -> dict[str, Any]:
        """Return what defines the outputs of the head, wherever the data are."""
        keys = ("type", "texts", "labels", "low", "high", "mean", "deviation")
        return {key: getattr(self, key) for key in keys}

    @property
    def lacks(self) -> list[str]:
        """Return the fields that `completed` reads from the labels."""
        needed = ("type", *self.own.read)
        return [key for key in needed if getattr(self, key) in (None, ())]

    def to_json(self) -> dict[str, Any]:
        """Return the keys that are not the defaults, without the name."""
        every = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "name"}
        usual = {one.name: default_of(one) for one in fields(self)}
        return {key: as_json(one) for key, one in every.items() if one != usual[key]}

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
                found = replace(found, **found.own.complete(found))
        except DataError:
            raise
        except ValueError as error:
            name = "" if isinstance(error, SettingsError) else f"{self.name}: "
            raise DataError(f"{found.train}: {name}{error}") from error
        if found.test is None:
            return found
        columns = columns_of(Path(found.test), found.quotes)
        return replace(found, test_labels={*found.label} <= {*columns})

    def inferred(self) -> dict[str, str]:
        """Return the type that follows from the labels."""
        if len(self.label) > 1 or self.separator is not None:
            return {"type": "multi-label"}
        lists = holds_lists(Path(self.train), self.label[0])
        cells = Counter(cell for _, cell in self.cells())
        return infer_type(cells, self.texts, lists)

    def cells(self) -> Iterator[tuple[int, str]]:
        """Yield (line, cell) of the labels of train that are not blank; lists are joined."""
        lists = {}
        if self.type in (None, "multi-label"):
            lists = dict.fromkeys(self.label, self.separator or SEPARATOR)
        for line, row in rows_by_name(
            Path(self.train), self.label, quoted_tabs=self.quotes, lists=lists
        ):
            yield from ((line, cell) for name in self.label if (cell := row[name].strip()))

    def lines(self) -> Iterator[str]:
        """Yield what the task predicts from which columns, and a notice about doubtful labels."""
        texts, columns = (first_names(list(map(repr, one))) for one in (self.text, self.label))
        if self.labels:
            what = f"{len(self.labels)} {'classes' if self.has_classes else 'labels'}: "
            what += first_names(self.labels, 10)
            if self.has_classes and len(self.labels) == 2:
                what += f"; f1 is that of {self.labels[1]}"
        else:
            what = ", ".join(f"{key} {getattr(self, key):.4g}" for key in self.own.read)
        yield f"{self.type} of {texts}, label {columns}: {what}"
        if self.predicts == "labels" and len(self.label) == 1:
            for mark in ",;|/":
                if found := [label for label in self.labels if mark in label]:
                    key = f"separator={mark}".replace(",", "\\,")
                    yield f"labels contain {mark!r}, such as {found[0]!r}; {key} splits them"

    def build(self) -> Task:
        parts = self.own.parts(self)
        columns, several = len(self.label) > 1, self.predicts == "labels"
        files = LabelledFiles(
            # Relative to the working directory, not to --data.
            files={split: str(Path(file).absolute()) for split, file in self.files.items()},
            text_columns=self.text,
            label_columns=self.label,
            separator=self.separator if several and not columns else None,
            parse_label=parts.parse_label,
            clean_text=str.strip,
            target_type=parts.target_type,
            id_column=self.id,
            quoted=self.quotes,
            labelled_test=self.test_labels or (self.dev is None and self.test is None),
            blank=() if several and self.blank == "none" else ("",),
            lower_ids=False,
            skip_blank_texts=True,
            group_column=self.group,
        )
        source = HashedSource(files, self.test is None) if self.dev is None else files
        head, output = parts.build_head, parts.output
        return Task(self.name, parts.kind, source, head, output, joint=self.joint, texts=self.texts)


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


def own_tasks_of(stored: Any) -> dict[str, OwnTask]:
    """Return the tasks that a run stores as `own_tasks`; raise SettingsError for other content."""
    found = {}
    for name, given in convert("own_tasks", dict[str, Any], stored).items():
        found[name] = given if isinstance(given, OwnTask) else own_task(name, given)
        if found[name].lacks:
            raise SettingsError(f"own_tasks: {name} lacks {', '.join(found[name].lacks)}")
    return found


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
    found: dict[str, str] = {}
    for split, names in IN_FOLDER.items():
        for file in (folder / f"{name}{ending}" for name in names for ending in ENDINGS):
            if file.exists():
                found.setdefault(split, str(file))
    if "train" not in found:
        raise DataError(f"{folder}: expected a file train.csv or the like, found none")
    return found
