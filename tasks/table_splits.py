"""Train, dev and test of a table whose rows several tasks share. No torch is imported here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from common.text import first_names
from tasks.labelled_files import LabelledFiles
from tasks.own_types.classes import MANY_NUMBERS
from tasks.own_types.multi_label import parts_of
from tasks.readers import Examples, Limit, text_hash, to_number
from tasks.splits import held_out_sizes, read_part
from tasks.stratified import joined_rows, stratified_parts
from tasks.tables import rows_by_name
from tasks.text_files import DataError, Stamp, stamp

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class TableSplit:
    """What determines the split of a table's rows.

    `columns` are the label columns, each with the separator of its labels, "" for one label. Rows
    with the same value in `group` stay together. `test` is the share of test, None if it has a file
    of its own.
    """

    texts: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    group: str | None = None
    quotes: bool = True
    test: float | None = None


@dataclass(frozen=True)
class TableSource:
    """The examples of one task of a table, whose rows are split once for all of its tasks.

    The split does not depend on a run's random seed. Equal texts, and rows of one group, are on one
    side. The shares of all labels are nearly those of the whole table. Rows without a label of the
    task are skipped. A limit draws the same rows for all tasks, as far as they have labels.
    """

    source: LabelledFiles
    table: TableSplit
    splits: tuple[str, ...] = SPLITS

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if self.has_file(split):
            return self.source.read(folder, split, limit)
        file = self.source.file(folder, "train")
        parts = row_parts(file, self.table, stamp(file))
        labelled = (row is not None for row in self.source.rows(folder, "train"))
        rows = np.flatnonzero(np.fromiter(labelled, bool))
        own = np.flatnonzero(parts[rows] == SPLITS.index(split))  # positions in rows
        if not len(own):
            columns = first_names([repr(one) for one in self.source.label_columns])
            raise DataError(
                f"{file}: expected a label in column {columns}, found none in {split}; leave the "
                "column out, or label more rows"
            )
        order = np.random.default_rng(0).permutation(len(parts))
        drawn = own[np.argsort(order[rows[own]])]
        return read_part(self.source, folder, split, drawn, limit)

    def has_file(self, split: str) -> bool:
        """Return whether a split has a file of its own."""
        return split == "test" and self.table.test is None

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, split if self.has_file(split) else "train")


@lru_cache(maxsize=16)
def row_parts(file: Path, table: TableSplit, stamp: Stamp) -> np.ndarray:
    """Return the split of each row of a file, (n,), as its place in `SPLITS`; -1 without a text.

    All tasks and splits of a table use the result, which is computed again if the file's `stamp`
    changes. The texts are not kept. Raise DataError for a file that cannot be split.
    """
    hashes: list[int | None] = []  # None without a text
    groups: list[str | None] = []
    rows, labels = [], []
    codes: dict[tuple[str, str], int] = {}  # (column, label) -> number
    needed = [*table.texts, *(name for name, _ in table.columns)]
    needed += [table.group] if table.group else []
    lists = {name: separator for name, separator in table.columns if separator}
    needed = list(dict.fromkeys(needed))
    fields = rows_by_name(file, needed, quoted_tabs=table.quotes, lists=lists)
    for number, (_, row) in enumerate(fields):
        texts = [row[name].strip() for name in table.texts]
        hashes.append(text_hash(texts) if all(texts) else None)
        groups.append((row[table.group].strip() or None) if table.group else None)
        for column, separator in sorted(table.columns):
            cell = row[column].strip()
            for label in dict.fromkeys(parts_of(cell, separator) if separator else cell and [cell]):
                rows.append(number)
                labels.append(codes.setdefault((column, label), len(codes)))
    used = np.array([one is not None for one in hashes], bool)
    place = np.cumsum(used) - 1  # of a row among those with texts
    group = joined_rows(
        int(used.sum()),
        [one for one, keep in zip(hashes, used, strict=True) if keep],
        [one for one, keep in zip(groups, used, strict=True) if keep],
    )
    pairs = np.array([rows, labels], np.int64).reshape(2, -1)
    pairs = pairs[:, used[pairs[0]]]
    pairs[1] = strata(list(codes), pairs[1], table)[pairs[1]]
    found = np.full(len(used), -1, np.int8)
    found[used] = split_of_rows(file, place[pairs[0]], pairs[1], group, table)
    found.flags.writeable = False
    return found


def strata(codes: Sequence[tuple[str, str]], labels: np.ndarray, table: TableSplit) -> np.ndarray:
    """Return the stratum of each label: itself, or the quarter of a column of many numbers."""
    found = np.arange(len(codes))
    counts = np.bincount(labels, minlength=len(codes))
    for column, separator in table.columns:
        own = np.array([i for i, (name, _) in enumerate(codes) if name == column], np.int64)
        values = [to_number(codes[i][1]) for i in own]
        if separator or len(own) <= MANY_NUMBERS or None in values:
            continue
        own = own[np.argsort(np.array(values, float), kind="stable")]
        middle = np.cumsum(counts[own]) - counts[own] / 2  # rank of the rows with this number
        quarter = np.minimum(3, 4 * middle / max(1, counts[own].sum())).astype(np.int64)
        found[own] = own[np.searchsorted(quarter, quarter)]  # the first number of the quarter
    return np.unique(found, return_inverse=True)[1].reshape(-1)


def split_of_rows(
    file: Path, rows: np.ndarray, labels: np.ndarray, groups: np.ndarray, table: TableSplit
) -> np.ndarray:
    """Return the split of each row that has texts, as its place in `SPLITS`."""
    count = len(groups)
    dev, test = held_out_sizes(count, table.test)
    sizes = [count - dev - test, dev, test]
    expected = SPLITS[: 3 if table.test else 2]
    few = f"{file}: expected more rows, or smaller groups, to split into {', '.join(expected)}"
    if min(sizes[: len(expected)]) < 1:
        raise DataError(f"{few}, found {count} rows")
    parts = stratified_parts(rows, labels, groups, sizes)
    if len(set(parts.tolist())) < len(expected):
        found = f"found {count} rows in {groups.max() + 1} groups, which equal texts join"
        raise DataError(f"{few}, {found}")
    return parts
