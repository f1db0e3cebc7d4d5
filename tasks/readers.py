"""Examples of a task, read from files of texts and labels, and the parsers of labels."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from common.errors import all_names, first_names
from tasks.csv_files import Layout
from tasks.tables import SPLITS, DataError, read_table

Label = float | tuple[float, ...]  # a class, a number, or 0 or 1 for each of several labels
Parser = Callable[[str], Any]  # of a cell -> Label, or None for no label
LARGEST = 1e30  # number, so that float32 can hold it
Limit = int | float | None  # number of examples, or a share below 1; None for all
Limits = int | float | Mapping[str, int | float] | None  # of every task, or by task


@dataclass(frozen=True)
class Examples:
    """n examples, in the order of their file.

    `texts` holds one list of n strings per text column. `targets` (n, ...) holds int64 classes or
    float32 numbers, None in a test file without labels; single blank ones are -1, or infinite.
    `blank_rows` counts the rows skipped for a blank label or text, `leaked` those removed because
    they are also in dev or test. `drawn_from` counts the examples before a limit.
    """

    ids: list[str]
    texts: tuple[list[str], ...]
    targets: np.ndarray | None
    blank_rows: int = 0
    leaked: int = 0
    drawn_from: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def available(self) -> int:
        return len(self) if self.drawn_from is None else self.drawn_from

    def sample(self, limit: Limit) -> Self:
        """Return `limit` examples drawn at random, or a share of them; all of them for None."""
        rows = sample_rows(len(self), limit)
        if len(rows) == len(self):
            return self
        return replace(self.select(rows), drawn_from=self.available)

    def select(self, rows: np.ndarray) -> Self:
        """Return the examples of these rows, in their order."""
        ids, targets = [self.ids[row] for row in rows], self.targets
        texts = tuple([column[row] for row in rows] for column in self.texts)
        targets = None if targets is None else targets[rows]
        return replace(self, ids=ids, texts=texts, targets=targets)


def limit_of(limit: Limits, task: str) -> Limit:
    """Return the limit of a task: the run's, or the one for its name."""
    return limit.get(task) if isinstance(limit, Mapping) else limit


def sample_rows(count: int, limit: Limit) -> np.ndarray:
    """Return sorted positions of `limit` of `count` examples; all for None.

    They are drawn at random, always the same ones: the first would not do, as SST's are sorted.
    """
    most = max(1, round(limit * count)) if isinstance(limit, float) else limit
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


def clean_pair_text(text: str) -> str:
    """Convert a text of Quora or STS to lower case, single spaces, and a space before . ? , '"""
    text = text.lower()
    for mark in ".?,'":
        text = text.replace(mark, f" {mark}")
    return " ".join(text.split())


def class_parser(spellings: Mapping[str, int | None] | int) -> Parser:
    """Return a parser of classes by their spellings, in any case, numbers also as 1.0 or True.

    Spellings that are equal but for this, and mean two classes, are read only as they stand.
    A number C stands for the classes 0 to C - 1. A blank cell is no label, nor is `-`, with which
    data sets of NLI mark a lack of agreement, nor -1 beside 0, with which others do.
    """
    classes = {str(n): n for n in range(spellings)} if isinstance(spellings, int) else spellings
    meant: dict[Decimal | str, set[int | None]] = {}
    for one, number in classes.items():
        meant.setdefault(plain(one), set()).add(number)
    known: dict[Decimal | str, int | None] = dict.fromkeys(("", "-"))
    known |= {Decimal(-1): None} if Decimal(0) in meant else {}
    known |= {key: numbers.pop() for key, numbers in meant.items() if len(numbers) == 1}

    def parse(cell: str) -> int | None:
        if cell in classes:
            return classes[cell]
        if (found := plain(cell)) not in known:
            raise ValueError(f"expected {first_names([*classes], 20)}")
        return known[found]

    return parse


def plain(cell: str) -> Decimal | str:
    """Return what all spellings of a label have in common: a number, or lower-case text."""
    found = {"true": "1", "false": "0"}.get(cell.lower(), cell.lower())
    return found if to_number(found) is None else Decimal(found)


def number_parser(low: float = -LARGEST, high: float = LARGEST, origin: float = 0.0) -> Parser:
    """Return a parser of numbers, relative to `origin`; -1 is no label on a scale from 0 on."""

    def parse(cell: str) -> float | None:
        value = to_number(cell)
        if value == -1 and low >= 0:
            return None
        if cell and (value is None or not low <= value <= high):
            raise ValueError(f"expected a number from {low:g} to {high:g}")
        return None if value is None else value - origin

    return parse


def to_number(label: str) -> float | None:
    """Return a label as a finite number, or None; Python's 1_000 is a name."""
    try:
        value = float(label.replace("_", "x"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


class Source(Protocol):
    """A source of a task's examples.

    `splits` are the available ones of train, dev and test. `limit` counts all examples, or those of
    each task if the texts come from several tasks. `where` returns the file or files of a split.
    """

    @property
    def splits(self) -> tuple[str, ...]: ...
    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples: ...
    def where(self, folder: Path, split: str) -> str: ...


@dataclass(frozen=True)
class LabelledFiles:
    """One file per split, with one or two texts and a label in each row; `test` may have no labels.

    `files` are names by split: the first of those whose dev file is in the data folder. Without an
    `id_column` the row number, from 1, is the id. The `split_column` names each row's split;
    `in_train` are splits whose rows are named train. `parse_label` reads a label: whole numbers are
    classes; rows without one are skipped, but for those of a test file. With several
    `label_columns`, each has one of several labels. With a `separator`, a label in JSON or Parquet
    may be a list. `joined` makes one text of those of a row.
    """

    files: tuple[Mapping[str, str], ...]
    text_columns: tuple[str, ...]
    label_columns: tuple[str, ...]
    parse_label: Parser
    clean_text: Callable[[str], str]
    id_column: str | None = "id"
    layout: Layout = field(default_factory=Layout)
    split_column: str | None = None
    in_train: tuple[str, ...] = ()
    labelled_test: bool = False
    lower_ids: bool = True
    skip_blank_texts: bool = False  # like blank labels, in a file with labels
    separator: str = ""
    joined: bool = False

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.files[0])

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        path, labelled = Path(self.where(folder, split)), split != "test" or self.labelled_test
        others = [self.where(folder, one) for one in self.splits if one != split]
        alone = split == "test" and (self.split_column is not None or str(path) not in others)
        labels = self.label_columns if labelled else ()
        every = (self.id_column, self.split_column, *self.text_columns, *labels)
        lists = labels if self.separator else ()
        table = read_table(path, self.layout).fields([*filter(None, every)], lists, self.separator)
        named = "train" if split in self.in_train else split
        lines: dict[str, int] = {}  # id -> line
        examples: list[tuple[str, Label | None, list[str]]] = []  # id, target, texts
        blank = 0
        for number, (line, row) in enumerate(table, 1):
            try:
                part = row[self.split_column].strip().lower() if self.split_column else named
                if part not in SPLITS:
                    raise ValueError(f"expected {all_names([*SPLITS], 'or')}, found {part!r}")
                if SPLITS[part] != named:
                    continue
                found = row[self.id_column].strip() if self.id_column else str(number)
                identity = found.lower() if self.lower_ids else found
                if not identity or not identity.isprintable() or " , " in identity:
                    expected = "expected an id without ' , ' and line breaks"
                    raise ValueError(f"{expected}, found {found!r}")
                if (first := lines.setdefault(identity, line)) != line:
                    found = f"{identity!r} is there twice (first in line {first})"
                    raise ValueError(f"ids must be unique, but {found}")
                target = self.target({name: row[name].strip() for name in labels})
            except ValueError as error:
                raise DataError(f"{path}, line {line}: {error}") from error
            texts = [self.clean_text(row[name]) for name in self.text_columns]
            texts = [" ".join(filter(None, texts))] if self.joined else texts
            lacks = target is None or (self.skip_blank_texts and not all(texts))
            if labelled and lacks and not alone:  # all of test are predicted
                blank += 1
                continue
            examples.append((identity, target, texts))
        if not examples:
            none = f"rows without label or text: {blank}"
            raise DataError(f"{path}: there are no examples ({none})")
        ids, targets, by_row = zip(*examples, strict=True)
        array: Any = None
        if known := [one for one in targets if one is not None]:
            whole = isinstance(known[0], int)
            unknown: Any = -1 if whole else np.full(np.shape(known[0]), np.inf)
            rows = [unknown if one is None else one for one in targets]
            array = np.array(rows, np.int64 if whole else np.float32)
        by_column = tuple(map(list, zip(*by_row, strict=True)))
        return Examples([*ids], by_column, array, blank).sample(limit)

    def target(self, cells: Mapping[str, str]) -> Label | None:
        """Return the label in the cells of a row, None if one has none; raise ValueError."""
        found: list[Any] = []
        for name, cell in cells.items():
            try:
                found.append(self.parse_label(cell))
            except ValueError as error:
                raise ValueError(f"{name}: {error}, found {cell!r}") from error
        if None in found or not found:
            return None
        return tuple(found) if len(found) > 1 else found[0]

    def where(self, folder: Path, split: str) -> str:
        here = (one for one in self.files if (folder / one["dev"]).exists())
        return str(folder / next(here, self.files[0])[split])


def files_of(source: Any) -> Any:
    """Return the source of files behind one that derives its splits from theirs."""
    while hasattr(source, "source"):
        source = source.source
    return source
