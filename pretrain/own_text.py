"""Text of anybody's own, without labels: sentences, or pairs that belong together."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pretrain.texts import Columns, linked
from tasks.readers import Limit, drawn
from tasks.text_files import READERS, DataError, read_sentences, rows_by_name


def unlabelled(
    file: str, column: str | None, folder: Path, limit: Limit
) -> tuple[Columns, np.ndarray]:
    """Each sentence of a file once, with itself; `limit` of them, drawn at random."""
    found = [
        text for text in dict.fromkeys(map(str.strip, read_sentences(Path(file), column))) if text
    ]
    found = [found[row] for row in drawn(len(found), limit)]
    return (found, found), np.arange(len(found))


def own_pairs(
    file: str, names: tuple[str, str], folder: Path, limit: Limit
) -> tuple[Columns, np.ndarray]:
    """Each pair of a file once, both texts there; `limit` of them, drawn at random.

    Groups are linked by texts that pairs share, directly or through others. Raises DataError for
    fewer than two groups, of which nothing could be learnt.
    """
    path = Path(file)
    if path.suffix.lower() not in READERS:
        raise DataError(f"{path}: expected a file with columns ({', '.join(READERS)})")
    count = 0
    pairs: dict[tuple[str, str], None] = {}  # not the rows, whose other columns may be long
    rows = rows_by_name(path, names, comma=path.suffix.lower() == ".csv")
    for _, row in rows:
        count += 1
        pairs[row[names[0]].strip(), row[names[1]].strip()] = None
    found = [pair for pair in pairs if all(pair)]
    found = [found[row] for row in drawn(len(found), limit)]
    if len(found) < 2:
        raise DataError(
            f"{path}: expected two different pairs with both texts, found {len(found)} "
            f"in {count} rows"
        )
    left, right = [one for one, _ in found], [other for _, other in found]
    groups = linked(left, right)
    if (groups == groups[0]).all():
        raise DataError(
            f"{path}: expected pairs that do not belong together, found all {len(groups):,} linked "
            "by texts that they share"
        )
    return (left, right), groups
