"""Embeddings to search, in memory or in a file, read and scaled to unit length in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from common.atomic_files import check_regular
from common.errors import UserError
from serving.empty_texts import is_empty, warn_of_empty_texts
from tasks.tables import read_sentences

if TYPE_CHECKING:
    from minbert.bi_encoder import BiEncoder

ROUNDING = 1e-6  # error of cosines in float32: equal pairs may differ slightly
SAMPLE = 8  # rows of an array that are computed again, to find one of other texts
SAME = 0.98  # cosine of two embeddings of a sentence; with int8 on one side it is about 0.999


@dataclass(frozen=True)
class Rows:
    """Embeddings (n, H) and which of them (n,) belong to empty texts and are not searched.

    Those of a file, `source`, are mapped, not read. They are checked and scaled to unit length
    whenever a block is read. Those in memory are of unit length already.
    """

    array: np.ndarray
    empty: np.ndarray
    source: Path | None = None

    @classmethod
    def of(cls, array: np.ndarray) -> Rows:
        """Return rows of unit length in memory; a row of NaN is that of an empty text."""
        return cls(array, np.isnan(array[:, 0]))

    def __len__(self) -> int:
        return len(self.array)

    @property
    def width(self) -> int:
        return int(self.array.shape[1])

    def there(self) -> np.ndarray:
        """Return the rows (k,) that are searched."""
        return np.flatnonzero(~self.empty)

    def take(self, which: slice | np.ndarray) -> np.ndarray:
        """Return some rows (k, H) in float32; those of empty texts are NaN.

        Raise UserError for other rows that are not finite.
        """
        block = self.array[which]
        if self.source is None:
            return block
        empty = self.empty[which]
        if len(wrong := np.flatnonzero(~np.isfinite(block).all(1) & ~empty)):
            row = np.arange(len(self))[which][wrong[0]] + 1
            raise UserError(f"{self.source}: expected finite numbers, found others in row {row}")
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        block = np.asarray(block / np.maximum(lengths, 1e-12), np.float32)
        block[empty] = np.nan
        return block


def empty_texts_of(
    source: Path, column: str | None = None, result: str = "are not searched"
) -> np.ndarray:
    """Return which sentences of a file (n,) are empty, and warn of their number and `result`.

    The file is read once, and its sentences are not kept.
    """
    sentences = read_sentences(source, column)
    empty = np.fromiter((is_empty(sentence) for sentence in sentences), bool)
    check_some_text(source, empty)
    warn_of_empty_texts(int(empty.sum()), len(empty), result)
    return empty


def check_some_text(source: Path, empty: Sequence[bool] | np.ndarray) -> None:
    """Raise UserError if all sentences of a file are empty, or if it has none."""
    if np.all(empty):
        what = "only empty ones" if len(empty) else "none"
        raise UserError(f"{source}: expected at least one sentence, found {what}")


def open_rows(file: Path, empty: np.ndarray, width: int | None = None) -> Rows:
    """Map the array (n, H) of --mode encode in a file; `empty` (n,) are rows of empty texts.

    Raise UserError for another number of rows or another width than those given.
    """
    check_regular(file)
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        line = "expected an array of --mode encode, found another file"
        raise UserError(f"{file}: {line}") from error
    if not isinstance(array, np.ndarray):
        raise UserError(f"{file}: expected an array of --mode encode, found several")
    shape = array.shape
    good = len(shape) == 2 and shape[0] == len(empty) and shape[1] == (width or shape[1])
    if not good or not shape[1] or array.dtype != np.float32:
        raise UserError(
            f"{file}: expected {len(empty)} x {width or 'width'} float32, one row per sentence, "
            f"found {' x '.join(map(str, shape))} {array.dtype}; give the file and the encoder "
            "(--encoder or --run, --width) of the array"
        )
    return Rows(array, empty, file)


def sample_of(empty: np.ndarray) -> np.ndarray:
    """Return the indices of a few rows with a text, spread over all of them."""
    rows = np.flatnonzero(~empty)
    return rows[np.unique(np.linspace(0, len(rows) - 1, SAMPLE).round().astype(int))]


def check_sample(rows: Rows, sample: np.ndarray, vectors: np.ndarray, source: Path) -> None:
    """Raise UserError if rows of an array are not the `vectors` (n, H) of unit length there.

    It is then an array of other sentences, of another order, or of another encoder.
    """
    cosines = (rows.take(sample) * vectors).sum(1)
    if len(wrong := sample[cosines < SAME]):
        line = f"expected the embeddings of {source} by this encoder, found another in row"
        raise UserError(f"{rows.source}: {line} {wrong[0] + 1}")


def texts_of(source: Path, column: str | None, rows: Iterable[int]) -> dict[int, str]:
    """Return the sentences of some rows of a file, which is read up to the last of them."""
    wanted = {int(row) for row in rows}
    last, found = max(wanted, default=-1), {}
    for row, sentence in enumerate(read_sentences(source, column) if wanted else ()):
        if row in wanted:
            found[row] = sentence
        if row == last:
            return found
    if wanted:
        raise UserError(f"{source}: expected row {last + 1}, found the file changed meanwhile")
    return found


def read_sentence_list(file: Path, column: str | None = None) -> list[str]:
    """Return all sentences of a file, in order; raise UserError if there are only empty ones."""
    found = list(read_sentences(file, column))
    check_some_text(file, [is_empty(sentence) for sentence in found])
    return found


def embeddings_of(sentences: list[str], model: BiEncoder, precision: str = "fp32") -> np.ndarray:
    """Return embeddings of unit length (n, H).

    Those of empty texts are NaN, and are counted in an EmptyTextWarning.
    """
    empty = np.array([is_empty(sentence) for sentence in sentences], bool)
    warn_of_empty_texts(int(empty.sum()), len(empty), "are not searched")
    found = model.encode(sentences, precision, normalize=True, progress=True)
    found[empty] = np.nan
    return found
