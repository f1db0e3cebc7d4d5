"""Exact search, in blocks, for the most similar pairs of sentences and the nearest to a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from common.atomic_files import check_regular
from common.errors import UserError
from common.progress import bar
from minbert.bi_encoder import BiEncoder
from serving.empty_texts import is_empty, warn_of_empty_texts
from tasks.tables import read_sentences


def read_sentence_list(file: Path, column: str | None = None) -> list[str]:
    """Return all sentences of a file, in order; raise UserError if there are only empty ones."""
    found = list(read_sentences(file, column))
    if all(map(is_empty, found)):
        what = "only empty ones" if found else "none"
        raise UserError(f"{file}: expected at least one sentence, found {what}")
    return found


def embeddings_of(
    sentences: list[str], model: BiEncoder, kept: Path | None = None, precision: str = "fp32"
) -> np.ndarray:
    """Return embeddings of unit length (n, H), read from `kept` (of --mode encode) if given.

    Those of empty texts are NaN, and are counted in an EmptyTextWarning.
    """
    empty = np.array([is_empty(sentence) for sentence in sentences], bool)
    warn_of_empty_texts(int(empty.sum()), len(empty), "are not searched")
    if kept is None:
        found = model.encode(sentences, precision, normalize=True, progress=True)
        found[empty] = np.nan
        return found
    check_regular(kept)
    try:
        array = np.load(kept, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{kept}: expected an array of --mode encode: {error}") from error
    if not isinstance(array, np.ndarray):
        raise UserError(f"{kept}: expected an array of --mode encode, found several")
    if array.shape != (len(sentences), model.width) or array.dtype != np.float32:
        raise UserError(
            f"{kept}: expected {len(sentences)} x {model.width} float32, one row per sentence, "
            f"found {' x '.join(map(str, array.shape))} {array.dtype}"
        )
    if len(wrong := np.flatnonzero(~np.isfinite(array).all(1) & ~empty)):
        raise UserError(f"{kept}: expected finite numbers, found others in row {wrong[0] + 1}")
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    found = np.asarray(array / np.maximum(lengths, 1e-12), np.float32)
    found[empty] = np.nan
    return found


def with_embedding(embeddings: np.ndarray) -> np.ndarray:
    """Return the rows (k,) of embeddings (n, H) that are not NaN, as those of empty texts are."""
    return np.flatnonzero(~np.isnan(embeddings[:, 0]))


ROUNDING = 1e-6  # error of cosines in float32: equal pairs may differ slightly
BLOCK = 2048  # rows per matrix product, which has BLOCK x BLOCK scores
CHUNK = 1 << 18  # pairs offered at a time: in the first block, every pair may qualify


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
    embeddings: np.ndarray, count: int, threshold: float = -1.0, progress: bool = False
) -> Pairs:
    """Return the `count` pairs of rows of unit length (n, H) with the largest cosines.

    Every pair is compared once. Memory holds one block and about twice `count` pairs. Of pairs
    with equal cosines, those with the smallest rows are returned. Rows of NaN are in no pair.

    Args:
        threshold: smallest cosine of a pair.
        progress: show a progress bar with pairs/s.
    """
    best, there = TopPairs(count, threshold - ROUNDING), with_embedding(embeddings)
    n = len(there)
    total = n * (n - 1) // 2
    scores = torch.empty(BLOCK, BLOCK)

    def rows(begin: int) -> Tensor:
        if n == len(embeddings):
            return torch.from_numpy(embeddings[begin : begin + BLOCK])
        return torch.from_numpy(embeddings[there[begin : begin + BLOCK]])

    with bar("mine", "pair", total if progress else None) as progress_bar:
        for begin in range(0, n, BLOCK):
            block = rows(begin)
            for other in range(begin, n, BLOCK):
                compare(block, rows(other), begin, other, best, scores)
            later = n - begin - len(block)
            progress_bar.update(len(block) * later + len(block) * (len(block) - 1) // 2)
    first, second, cosines = best.prune()
    return Pairs(there[first.numpy()], there[second.numpy()], cosines.numpy())


def compare(
    block: Tensor, others: Tensor, begin: int, other: int, best: TopPairs, scores: Tensor
) -> None:
    """Offer the pairs of two blocks that reach the threshold of `best`."""
    found = scores[: len(block), : len(others)]
    torch.mm(block, others.T, out=found)
    found.clamp_(-1, 1)  # rounding may exceed 1 slightly
    if begin == other:  # each pair once, no sentence with itself
        found.masked_fill_(~torch.ones_like(found, dtype=torch.bool).triu(1), -2)
    if float(found.max()) < best.threshold:
        return
    left, right = torch.nonzero(found >= best.threshold, as_tuple=True)
    for part in range(0, len(left), CHUNK):
        one, two = left[part : part + CHUNK], right[part : part + CHUNK]
        cosines = found[one, two]
        above = cosines >= best.threshold  # earlier parts may have raised the threshold
        best.add(one[above] + begin, two[above] + other, cosines[above])


def nearest(embeddings: np.ndarray, queries: np.ndarray, count: int) -> tuple[Any, Any]:
    """Return rows (q, k) and cosines (q, k) of the `count` nearest rows to each query.

    Rows of NaN are left out.
    """
    rows, there = torch.from_numpy(np.ascontiguousarray(embeddings)), with_embedding(embeddings)
    scores = torch.from_numpy(queries) @ rows.T
    if len(there) < len(rows):
        scores.nan_to_num_(nan=-torch.inf)
    cosines, places = torch.topk(scores, min(count, len(there)), dim=1)
    return places.numpy(), cosines.numpy()
