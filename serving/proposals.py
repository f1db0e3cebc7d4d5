"""Proposals of pairs of sentences: each with its nearest ones, or at random.

Thakur et al. (2021), section 3.1: semantic search finds pairs that may be similar; random pairs,
which hardly ever are, serve as a control.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from common.random_generators import generator
from serving.rows import Rows
from serving.search import search


class Proposal(NamedTuple):
    """Pairs of rows (k, 2), the smaller first, in ascending order; gold pairs are left out."""

    pairs: np.ndarray
    gold: int  # pairs left out because they are gold


def semantic_pairs(
    embeddings: np.ndarray, gold: np.ndarray, neighbours: int, count: int, seed: int
) -> Proposal:
    """Return `count` pairs of a row of unit length (n, H) and one of its nearest rows.

    They are drawn at random from those of all rows with their `neighbours` nearest ones. `gold`
    (g, 2) are pairs that are not proposed.
    """
    pairs = neighbour_pairs(embeddings, neighbours)
    known = np.isin(codes(pairs, len(embeddings)), codes(gold, len(embeddings)))
    fresh = pairs[~known]
    drawn = generator(seed, "semantic silver pairs").permutation(len(fresh))[:count]
    return Proposal(fresh[np.sort(drawn)], int(known.sum()))


def neighbour_pairs(embeddings: np.ndarray, count: int) -> np.ndarray:
    """Return the distinct pairs (p, 2) of each row (n, H) and its `count` nearest other rows.

    Rows of NaN, those of empty texts, are in no pair.
    """
    rows = Rows.of(embeddings)
    own = rows.there()
    near = search(rows, embeddings[own], count + 1, progress=True).rows
    # The row itself goes last, where it is dropped, or else the farthest one.
    last = np.argsort(near == own[:, None], axis=1, kind="stable")
    near = np.take_along_axis(near, last, axis=1)[:, :-1]
    pairs = np.stack([np.broadcast_to(own[:, None], near.shape), near], -1).reshape(-1, 2)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def random_pairs(n: int, gold: np.ndarray, count: int, seed: int) -> Proposal:
    """Return `count` different pairs of n rows, drawn at random, or all there are.

    `gold` (g, 2) are pairs that are not proposed.
    """
    draw, known = generator(seed, "random silver pairs"), {*map(int, codes(gold, n))}
    wanted = min(count, n * (n - 1) // 2 - len(known))
    found, left_out = dict[int, None](), set[int]()
    while len(found) < wanted:
        drawn = np.sort(draw.integers(n, size=(2 * wanted, 2)), axis=1)
        for code in codes(drawn[drawn[:, 0] < drawn[:, 1]], n).tolist():
            if len(found) == wanted:
                break
            if code in known:
                left_out.add(code)
            else:
                found[code] = None
    chosen = np.sort(np.array([*found], np.int64))
    return Proposal(np.stack([chosen // max(n, 1), chosen % max(n, 1)], axis=1), len(left_out))


def codes(pairs: np.ndarray, count: int) -> np.ndarray:
    """Return one number for each pair of rows below `count`."""
    return pairs[:, 0] * count + pairs[:, 1]
