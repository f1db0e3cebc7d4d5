"""The rows nearest to queries, in blocks: exact, or by a first pass over an index.

The first pass orders all rows by their codes (serving/quantized.py) and keeps `rescore` times as
many as are wanted. Their cosines are then computed in float32. Of rows with equal cosines, the
first ones are found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from common.json_files import read_json, write_json
from common.progress import bar
from common.random_generators import generator
from serving.quantized import Index, to_int8
from serving.rows import ROUNDING, Rows

SCORES = 1 << 22  # in memory at a time
ROWS, QUERIES = 16384, 1024  # most of each in a product
SAMPLE = 100  # rows that are searched again to measure the recall


class Found(NamedTuple):
    """Rows (q, k) and their cosines (q, k) for each query, the most similar first."""

    rows: np.ndarray
    cosines: np.ndarray


class BestRows:
    """The `count` best of the rows offered so far to each of several queries."""

    def __init__(self, queries: int, count: int) -> None:
        self.count = count
        self.scores = torch.full((queries, count), -torch.inf)
        self.rows = torch.full((queries, count), -1)

    def add(self, scores: Tensor, begin: int) -> None:
        """Offer the rows from `begin` on, with scores (q, b); rows with score -inf are skipped.

        Rows come in ascending order, so that of equal scores the earlier one stays.
        """
        least = self.scores[:, -1:]
        query, place = torch.nonzero(scores > least, as_tuple=True)
        if len(query) > 2 * self.scores.numel():  # the first blocks
            wanted = min(self.count, scores.shape[1])
            enough = torch.topk(scores, wanted, dim=1).values[:, -1:]
            query, place = torch.nonzero((scores > least) & (scores >= enough), as_tuple=True)
        if not len(query):
            return
        own = torch.arange(len(self.scores)).repeat_interleave(self.count)
        queries = torch.cat([own, query]).numpy()
        rows = torch.cat([self.rows.flatten(), place + begin]).numpy()
        values = torch.cat([self.scores.flatten(), scores[query, place]]).numpy()
        order = np.lexsort((rows, -values, queries))
        sizes = np.bincount(queries)
        rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        kept = torch.from_numpy(order[rank < self.count])
        self.scores = torch.from_numpy(values)[kept].view_as(self.scores)
        self.rows = torch.from_numpy(rows)[kept].view_as(self.rows)


def search(
    rows: Rows,
    queries: np.ndarray,
    count: int,
    index: Index | None = None,
    *,
    candidates: int = 0,
    progress: bool = False,
) -> Found:
    """Return the `count` rows (q, k) nearest to each query (q, H) of unit length.

    Memory holds a block of rows, its scores, and the candidates of some queries, at most 4 million
    of both, besides the result.

    Args:
        index: codes of the rows for a first pass; without one, all cosines are computed.
        candidates: rows that the first pass finds for each query.
        progress: show a progress bar of rows.
    """
    searched = len(rows) - int(rows.empty.sum())
    count = min(count, searched)
    wanted = min(max(candidates, count), searched)
    found = []
    size = max(1, min(QUERIES, SCORES // max(1, wanted)))
    steps = range(0, len(queries), size)
    with bar("search", "row", len(steps) * len(rows) if progress else None) as shown:
        for begin in steps:
            part = queries[begin : begin + size]
            if index is None:
                best = scan(rows, part, count, None, shown)
                found.append(Found(best.rows.numpy(), best.scores.numpy()))
                continue
            near = scan(rows, part, wanted, index, shown).rows.numpy()
            found.append(rescored(rows, part, near, count))
    nothing = Found(np.zeros((0, count), np.int64), np.zeros((0, count), np.float32))
    return Found(*map(np.concatenate, zip(nothing, *found, strict=True)))


def scan(
    rows: Rows, queries: np.ndarray, count: int, index: Index | None, shown: object
) -> BestRows:
    """Return the best rows of all for each query, by cosines or by the scores of an index."""
    best = BestRows(len(queries), count)
    size = max(1, min(ROWS, SCORES // len(queries)))
    codes, plain = to_int8(queries), torch.from_numpy(queries)
    space = None if index is None else torch.empty(2 * size * len(queries))
    for begin in range(0, len(rows), size):
        which = slice(begin, begin + size)
        if index is None:
            scores = plain @ torch.from_numpy(np.ascontiguousarray(rows.take(which))).T
        else:
            scores = index.code.scores(codes, index.take(which), space)
        if (empty := rows.empty[which]).any():
            scores[:, torch.from_numpy(empty)] = -torch.inf
        best.add(scores, begin)
        shown.update(scores.shape[1])  # type: ignore[attr-defined]
    return best


def rescored(rows: Rows, queries: np.ndarray, candidates: np.ndarray, count: int) -> Found:
    """Return the `count` best of the candidates (q, c) by their cosines in float32."""
    places, cosines = [], []
    for query, some in zip(queries, candidates, strict=True):
        some = np.sort(some)
        exact = rows.take(some) @ query
        order = np.lexsort((some, -exact))[:count]
        places.append(some[order])
        cosines.append(exact[order])
    shape = len(queries), count
    return Found(np.reshape(places, shape), np.reshape(cosines, shape).astype(np.float32))


def recall(rows: Rows, index: Index, count: int, rescore: int) -> tuple[float, int]:
    """Return the recall@count of a search by an index, and the number of queries it is a mean of.

    The queries are rows drawn at random, which do not count as neighbours of themselves. The exact
    search takes a pass over all rows; its result is kept with the index.
    """
    there = rows.there()
    own = np.sort(generator(0, "recall of an index").permutation(there)[:SAMPLE])
    count = min(count, len(there) - 1)
    if not count:
        return 1.0, len(own)
    kept = index.folder / "recall.json" if index.folder else None
    known = read_json(kept) if kept and kept.exists() else {}
    key = f"{count} of {rescore * count}, {len(own)} queries, {len(there)} rows"
    if key not in known:
        known[key] = measured_recall(rows, index, own, count, rescore)
        if kept:
            write_json(kept, known)
    return known[key], len(own)


def measured_recall(rows: Rows, index: Index, own: np.ndarray, count: int, rescore: int) -> float:
    """Return the share of the `count` nearest rows to rows `own` that the index finds, too.

    A row of the same cosine as the last of them, up to rounding, counts as one of them.
    """
    queries = rows.take(own)
    # Each query finds itself, too.
    exact = search(rows, queries, count + 1)
    found = search(rows, queries, count + 1, index, candidates=rescore * count + 1)
    shares = []
    for row, *both in zip(own, *exact, *found, strict=True):
        places, cosines, near, near_cosines = both
        least = cosines[places != row][:count][-1]
        shares.append(np.mean(near_cosines[near != row][:count] >= least - ROUNDING))
    return float(np.mean(shares))
