"""Parts of rows with equal shares of each label, by iterative stratification. No torch is imported.

Sechidis, Tsoumakas and Vlahavas (2011), "On the stratification of multi-label data", algorithm 1.
The units are groups of rows that stay together, and the result does not depend on a random seed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np


def joined_rows(count: int, *keys: Iterable[Hashable | None]) -> np.ndarray:
    """Return the group of each of `count` rows, (count,), a number from 0.

    Each of `keys` has one value per row. Rows with an equal value are in one group, and so are rows
    that are joined by others. None joins no rows.
    """
    parent = list(range(count))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for values in keys:
        first: dict[Hashable, int] = {}
        for row, value in enumerate(values):
            if value is not None:
                parent[root(row)] = root(first.setdefault(value, row))
    return np.unique([root(row) for row in range(count)], return_inverse=True)[1].reshape(-1)


@dataclass
class Units:
    """Groups of rows and the parts that they are in.

    `sizes` (units,) are numbers of rows. Pair number i says that unit `unit[i]` has label
    `label[i]` in `count[i]` rows; pairs are sorted by unit, and those of unit u begin at
    `begin[u]`. `wanted` (parts,) and `wanted_labels` (parts, labels) are the rows that a part still
    needs; those of labels are multiplied by the number of all rows, so that all numbers are whole.
    `part` (units,) is -1 for a unit that has no part yet.
    """

    sizes: np.ndarray
    unit: np.ndarray
    label: np.ndarray
    count: np.ndarray
    begin: np.ndarray
    wanted: np.ndarray
    wanted_labels: np.ndarray
    part: np.ndarray

    def move(self, unit: int, part: int) -> None:
        """Put a unit into a part, and take it out of the one in which it was."""
        pairs = slice(self.begin[unit], self.begin[unit + 1])
        labels, counts = self.label[pairs], self.count[pairs] * self.sizes.sum()
        if (before := self.part[unit]) >= 0:
            self.wanted[before] += self.sizes[unit]
            self.wanted_labels[before, labels] += counts
        self.wanted[part] -= self.sizes[unit]
        self.wanted_labels[part, labels] -= counts
        self.part[unit] = part

    def best_part(self, wish: np.ndarray) -> int:
        """Return the part with the largest wish (parts,) of those that need rows."""
        needs = np.flatnonzero(self.wanted > 0)
        return int(max(needs, key=lambda part: (wish[part], self.wanted[part])))


def stratified_parts(
    rows: np.ndarray, labels: np.ndarray, groups: np.ndarray, sizes: Sequence[int]
) -> np.ndarray:
    """Return the part of each row, (n,), a number from 0.

    Args:
        rows, labels: (p,) pairs: row `rows[i]` has the label `labels[i]`, a number from 0.
        groups: (n,) numbers from 0; rows of one group are in one part.
        sizes: the wanted number of rows of each part; their sum is n.

    The labels are taken from the rarest to the most frequent, as counted in the units without a
    part. A unit goes to the part that needs the label most, then to the one that needs most rows.
    In addition to the paper, a part with all its rows gets no more, and at the end units are moved
    until no size differs from the wanted one by more than the rows of the largest group.
    """
    units = units_of(rows, labels, groups, sizes)
    # Large units first; equal ones in an order that has nothing to do with that of the file.
    shuffled = np.random.default_rng(0).permutation(len(units.sizes))
    members = np.lexsort((shuffled[units.unit], -units.count, units.label))
    begin = np.searchsorted(units.label[members], np.arange(units.wanted_labels.shape[1] + 1))
    left = np.bincount(units.label, units.count, len(begin) - 1).astype(np.int64)
    while left.any():
        rarest = int(np.argmin(np.where(left > 0, left, left.max() + 1)))
        for unit in units.unit[members[begin[rarest] : begin[rarest + 1]]]:
            if units.part[unit] < 0:
                units.move(unit, units.best_part(units.wanted_labels[:, rarest]))
                pairs = slice(units.begin[unit], units.begin[unit + 1])
                left[units.label[pairs]] -= units.count[pairs]
    for unit in np.lexsort((shuffled, -units.sizes)):
        if units.part[unit] < 0:
            units.move(unit, units.best_part(units.wanted))
    balance(units)
    return units.part[groups]


def units_of(
    rows: np.ndarray, labels: np.ndarray, groups: np.ndarray, sizes: Sequence[int]
) -> Units:
    """Return the groups of rows without a part."""
    kinds = int(labels.max(initial=-1)) + 1
    pairs, count = np.unique(groups[rows] * kinds + labels, return_counts=True)
    unit, label = np.divmod(pairs, kinds) if kinds else (pairs, pairs)
    of_unit = np.bincount(groups)
    total = np.bincount(label, count, kinds).astype(np.int64)
    return Units(
        sizes=of_unit,
        unit=unit,
        label=label,
        count=count,
        begin=np.searchsorted(unit, np.arange(len(of_unit) + 1)),
        wanted=np.array(sizes),
        wanted_labels=np.outer(sizes, total),
        part=np.full(len(of_unit), -1),
    )


def balance(units: Units) -> None:
    """Move units from the part with most surplus rows to the one that lacks most.

    A move makes the two sizes more equal to the wanted ones, so that this ends. Of the units that
    do so, the one that suits the labels of both parts best is moved.
    """
    while True:
        here, there = int(units.wanted.argmin()), int(units.wanted.argmax())
        gap = units.wanted[there] - units.wanted[here]
        movable = np.flatnonzero((units.part == here) & (units.sizes < gap))
        if not len(movable):
            return
        needs = (units.wanted_labels[there] - units.wanted_labels[here])[units.label]
        gain = np.bincount(units.unit, units.count * needs, len(units.sizes))
        units.move(int(movable[gain[movable].argmax()]), there)
