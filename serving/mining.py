"""Exact search, in blocks, for the most similar pairs of sentences."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from common.progress import bar
from serving.quantized import Index
from serving.rows import ROUNDING, Rows

BLOCK = 2048  # rows per matrix product, which has BLOCK x BLOCK scores
CHUNK = 1 << 18  # pairs offered at a time: in the first block, every pair may qualify
FEW = 4096  # pairs whose embeddings are read at a time


class Pairs(NamedTuple):
    """Rows `first` < `second` (k,) and their cosines (k,), the most similar first."""

    first: np.ndarray
    second: np.ndarray
    cosines: np.ndarray


class TopPairs:
    """The `count` best of all pairs offered, and the cosine below which a pair is dropped."""

    def __init__(self, count: int, threshold: float) -> None:
        self.count, self.threshold = count, threshold
        self.parts: list[tuple[Tensor, Tensor, Tensor]] = []
        self.size = 0

    def add(self, first: Tensor, second: Tensor, cosines: Tensor) -> None:
        self.parts.append((first, second, cosines))
        self.size += len(cosines)
        if self.size > 2 * self.count + BLOCK:
            self.prune()

    def prune(self) -> tuple[Tensor, Tensor, Tensor]:
        """Drop all but the best pairs; of equal pairs, keep those with the smallest rows."""
        if not self.parts:
            nothing = torch.zeros(0, dtype=torch.long)
            return nothing, nothing, torch.zeros(0)
        first, second, cosines = (torch.cat(part) for part in zip(*self.parts, strict=True))
        order = np.lexsort((second.numpy(), first.numpy(), -cosines.numpy()))[: self.count]
        kept = first[order], second[order], cosines[order]
        self.parts, self.size = [kept], len(order)
        if len(order) == self.count:
            # Only a larger cosine can still count, or an equal one of smaller rows.
            self.threshold = max(self.threshold, float(kept[2][-1]))
        return kept


def mine(
    embeddings: np.ndarray | Rows,
    count: int,
    threshold: float = -1.0,
    progress: bool = False,
    index: Index | None = None,
) -> Pairs:
    """Return the `count` pairs of rows of unit length (n, H) with the largest cosines.

    Every pair is compared once. Memory holds one block and about twice `count` pairs. Of pairs
    with equal cosines, those with the smallest rows are returned. Rows of NaN are in no pair.

    Args:
        threshold: smallest cosine of a pair.
        progress: show a progress bar with pairs/s.
        index: int8 codes of the rows. Pairs whose cosine is certainly too small by their codes are
            dropped, so that the same pairs are found, up to rounding.
    """
    rows = embeddings if isinstance(embeddings, Rows) else Rows.of(embeddings)
    best, there = TopPairs(count, threshold - ROUNDING), rows.there()
    n = len(there)
    total = n * (n - 1) // 2
    blocks = blocks_of(rows, there, index)

    with bar("mine", "pair", total if progress else None) as progress_bar:
        for begin in range(0, n, BLOCK):
            block = blocks.read(begin)
            for other in range(begin, n, BLOCK):
                blocks.compare(block, blocks.read(other), begin, other, best)
            own = min(BLOCK, n - begin)
            progress_bar.update(own * (n - begin - own) + own * (own - 1) // 2)
    first, second, cosines = best.prune()
    return Pairs(there[first.numpy()], there[second.numpy()], cosines.numpy())


def expected_seconds(rows: Rows, index: Index | None = None) -> float:
    """Return about how long `mine` takes, from the time of one block with itself."""
    there = rows.there()
    blocks = blocks_of(rows, there, index)
    block, none, times = blocks.read(0), TopPairs(1, 2.0), []
    for _ in range(2):  # the first one has costs that no other has
        begin = time.perf_counter()
        blocks.compare(block, blocks.read(0), 0, 0, none)
        times.append(time.perf_counter() - begin)
    blocks_of_all = max(1.0, len(there) / BLOCK)
    return min(times) * blocks_of_all * (blocks_of_all + 1) / 2


def blocks_of(rows: Rows, there: np.ndarray, index: Index | None) -> Blocks | CodedBlocks:
    return Blocks(rows, there) if index is None else CodedBlocks(rows, there, index)


def part(rows: Rows, there: np.ndarray, begin: int) -> slice | np.ndarray:
    """Return a block of the rows `there` that are searched, as a slice if these are all rows."""
    block = slice(begin, begin + BLOCK)
    return block if len(there) == len(rows) else there[block]


class Blocks:
    """Blocks of embeddings (b, H), whose pairs are compared by exact products.

    `there` (n,) are the rows that are searched; blocks count in them.
    """

    def __init__(self, rows: Rows, there: np.ndarray) -> None:
        self.rows, self.there = rows, there
        self.scores = torch.empty(BLOCK, BLOCK)

    def read(self, begin: int) -> Any:
        return torch.from_numpy(self.rows.take(part(self.rows, self.there, begin)))

    def compare(self, block: Any, others: Any, begin: int, other: int, best: TopPairs) -> None:
        """Offer the pairs of two blocks that reach the threshold of `best`."""
        found = self.scores[: len(block), : len(others)]
        torch.mm(block, others.T, out=found)
        found.clamp_(-1, 1)  # rounding may exceed 1 slightly
        if begin == other:  # each pair once, no sentence with itself
            found.masked_fill_(~torch.ones_like(found, dtype=torch.bool).triu(1), -2)
        if float(found.max()) < best.threshold:
            return
        left, right = torch.nonzero(found >= best.threshold, as_tuple=True)
        for some in range(0, len(left), CHUNK):
            one, two = left[some : some + CHUNK], right[some : some + CHUNK]
            cosines = found[one, two]
            above = cosines >= best.threshold  # earlier parts may have raised the threshold
            best.add(one[above] + begin, two[above] + other, cosines[above])


class CodedBlocks:
    """Blocks of int8 codes; only pairs that may reach the threshold are compared exactly.

    Rows x = c + e and y = d + f of unit length, with codes c and d, have the cosine
    x y = c d + c f + e y, which is at most |e| + |f| + |e| |f| from c d.
    """

    def __init__(self, rows: Rows, there: np.ndarray, index: Index) -> None:
        self.rows, self.there, self.index = rows, there, index
        self.space = torch.empty(2 * BLOCK * BLOCK)

    def read(self, begin: int) -> Any:
        return self.index.take(part(self.rows, self.there, begin))

    def compare(self, block: Any, others: Any, begin: int, other: int, best: TopPairs) -> None:
        found = self.index.code.scores(block, others, self.space)
        found *= torch.from_numpy(block["scales"])[:, None]
        if begin == other:
            found.masked_fill_(~torch.ones_like(found, dtype=torch.bool).triu(1), -3)
        one_error, two_error = float(block["errors"].max()), float(others["errors"].max())
        margin = one_error + two_error + one_error * two_error + ROUNDING
        hit = torch.nonzero(found.amax(1) >= best.threshold - margin)[:, 0]
        for few in hit.split(max(1, CHUNK // found.shape[1])):
            near = found[few]
            left, right = torch.nonzero(near >= best.threshold - margin, as_tuple=True)
            one, cosines = few[left], near[left, right]
            for some in range(0, len(one), FEW):
                part = slice(some, some + FEW)
                above = cosines[part] >= best.threshold - margin
                first, second = one[part][above] + begin, right[part][above] + other
                exact = self.cosines(first.numpy(), second.numpy())
                above = exact >= best.threshold
                if above.any():
                    best.add(first[above], second[above], exact[above])

    def cosines(self, first: np.ndarray, second: np.ndarray) -> Tensor:
        one, two = (self.rows.take(self.there[some]) for some in (first, second))
        exact = np.einsum("kh,kh->k", one, two, dtype=np.float64)
        return torch.from_numpy(exact.clip(-1, 1)).float()
