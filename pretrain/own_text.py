"""Text of anybody's own, without labels: sentences, or pairs that belong together."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pretrain.texts import Columns, linked
from tasks.readers import drawn
from tasks.text_files import read_sentences, rows_by_name


def unlabelled(
    file: str, column: str | None, folder: Path, limit: int | None
) -> tuple[Columns, np.ndarray]:
    """Each sentence of a file once, with itself; `limit` of them, drawn at random."""
    found = [
        text for text in dict.fromkeys(map(str.strip, read_sentences(Path(file), column))) if text
    ]
    found = [found[row] for row in drawn(len(found), limit)]
    return (found, found), np.arange(len(found))


def own_pairs(
    file: str, names: tuple[str, str], folder: Path, limit: int | None
) -> tuple[Columns, np.ndarray]:
    """Each pair of a file once, both texts there; groups are linked by texts that pairs share."""
    rows = rows_by_name(Path(file), names, comma=True)
    pairs = dict.fromkeys((row[names[0]].strip(), row[names[1]].strip()) for _, row in rows)
    found = [pair for pair in pairs if all(pair)]
    found = [found[row] for row in drawn(len(found), limit)]
    left, right = [one for one, _ in found], [other for _, other in found]
    return (left, right), linked(left, right) if found else np.array([], np.int64)
