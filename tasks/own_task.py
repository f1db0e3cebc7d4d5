"""A task on a user's own files: what the user says about it, and all that a run stores of it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

from msgspec import Meta

from common.errors import first_names
from common.settings import Name, short
from tasks.base import Pair, Task, TaskOptions
from tasks.built_in import TASK_NAMES
from tasks.csv_files import Layout
from tasks.metrics import OVERALL_KEYS
from tasks.own_types import LEARNT, TypeName, hints, infer_type, learnt, parts, same
from tasks.readers import LabelledFiles, plain
from tasks.splits import by_hash, split_file
from tasks.tables import SPLITS, TABLES, DataError, Table, read_table

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

    `completed` reads from the files which keys are missing. Of several label columns, each is a
    label with the name of its column.
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
            rule = "a name has 1 to 32 lower-case letters, digits, - and _, the first a letter"
            rule = "this name is reserved" if reserved else rule
            yield f"{short(self.name)}: {rule}; choose another name"
        columns = [*self.text, *self.label]
        if twice := [one for one in columns if columns.count(one) > 1]:
            yield f"column {twice[0]!r} is named twice, as text or label"
        if self.labels and self.type in ("regression", "similarity"):
            yield f"labels: type {self.type} has no classes; leave it out"
        if self.type == "similarity" and len(self.text) == 1:
            yield "text: similarity needs 2 columns, found 1"
        if len(self.label) > 1 and self.type not in (None, "multi-label"):
            yield f"label: type {self.type} takes one column, found {len(self.label)}"
        if len(self.label) > 1 and self.labels not in ((), self.label):
            yield "labels: leave it out; the names of several label columns are the labels"
        if self.low is not None and self.high is not None and self.low >= self.high:
            yield f"low: must be less than high ({self.high:g}), found {self.low:g}"
        if len(self.labels) == 1 or len({*map(same, self.labels)}) < len(self.labels):
            yield f"labels: name two or more, each once, found {first_names(self.labels)}"

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

    def completed(self) -> Self:
        """Return the task with what its files say: the type, classes, scale, mean and so on."""
        if self.test_labels is not None and not {None, ()} & {*self.known.values()}:
            return self
        found = self if self.dev or self.test else replace(self, **files_in(self.train))
        table, column = read_table(Path(found.train), self), self.split or "split"
        free = {*table.columns} - {*self.text, *self.label}
        if self.split or (column in free and not (found.dev or found.test)):
            names = {row[column].strip().lower() for _, row in table.fields([column])}
            if self.split or "train" in names:
                files = {SPLITS.get(name): found.train for name in names}
                dev, test = found.dev or files.get("dev"), found.test or files.get("test")
                found = replace(found, split=column, dev=dev, test=test)
        lists = any(isinstance(row.get(one), list) for _, row in table.rows for one in self.label)
        if self.type is None and (lists or len(self.label) > 1 or self.separator is not None):
            found = replace(found, type="multi-label")
        cells = found.cells(table)
        try:
            if not cells:
                raise ValueError("there are no labels")
            if found.type is None:
                inferred = infer_type([cell for _, cell in cells], len(self.text))
                found = replace(found, type=inferred)
            given = {key: one for key, one in found.known.items() if one not in (None, ())}
            found = replace(found, **{**learnt(found, cells), **given})
        except ValueError as error:
            raise DataError(f"{found.train}: {self.name}: {error}") from error
        labelled, none = False, {plain("-"), plain("-1")} - {*map(plain, found.labels)}
        if found.test and {*self.label} <= {*(other := read_table(Path(found.test), self)).columns}:
            labelled = any(plain(cell) not in none for _, cell in found.cells(other))
        return replace(found, test_labels=labelled)

    def cells(self, table: Table) -> list[tuple[int, str]]:
        """Return (line, cell) of the labels in a table that are not blank."""
        rows = table.fields(self.label, self.label if self.type == "multi-label" else (), self.mark)
        none = {"", *map(plain, self.blank)}
        cells = [(line, cell.strip()) for line, row in rows for cell in row.values()]
        return [(line, cell) for line, cell in cells if plain(cell) not in none]

    def lines(self) -> Iterator[str]:
        """Yield what the task predicts from which columns."""
        texts, columns = (first_names(list(map(repr, one))) for one in (self.text, self.label))
        what = ", ".join(f"{key} {one:.4g}" for key, one in self.known.items() if key != "labels")
        if self.labels:
            what = "classes" if self.type == "classification" else "labels"
            what = f"{len(self.labels)} {what}: {first_names(self.labels, 10)}"
        yield f"{self.type} of {texts}, label {columns}: {what}"
        if self.blank:
            yield f"{first_names([*map(repr, self.blank)])}: read as no label, unless in labels="
        if self.split:
            yield f"column {self.split!r} says which rows are train, dev and test"
        if self.low == -1 and (self.high or 0) > 1:
            yield "-1 is read as a number; if it means no label, add blank=-1"
        if len(self.label) == 1:
            yield from hints(self.labels)

    def build(self) -> Task:
        kind, head, output, parse = parts(self)
        none = {*map(plain, self.blank)}
        files = LabelledFiles(
            # Relative to the working directory, not to --data.
            files=({split: str(Path(file).absolute()) for split, file in self.files.items()},),
            text_columns=self.text,
            label_columns=self.label,
            separator=self.mark if self.type == "multi-label" and len(self.label) == 1 else "",
            parse_label=lambda cell: None if plain(cell) in none else parse(cell),
            clean_text=str.strip,
            id_column=self.id,
            layout=self,
            split_column=self.split,
            in_train=tuple(split for split in ("dev", "test") if not getattr(self, split)),
            labelled_test=bool(self.test_labels) or self.test is None,
            lower_ids=False,
            skip_blank_texts=True,
        )
        rule = partial(by_hash, test=self.test is None)
        source = split_file(files, rule) if self.dev is None else files
        joint, texts = self.pair == "joint", len(self.text)
        return Task(self.name, kind, source, head, output, joint=joint, texts=texts)


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
        raise DataError(f"{folder}: no training file, such as train.csv")
    return found
