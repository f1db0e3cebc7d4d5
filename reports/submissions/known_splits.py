"""Splits of published courses, recognised by a sketch of their ids.

CS224N and Göttingen's M.Inf.2202 gave out several versions of their files under the same names. A
sketch is the `SIZE` smallest 40-bit hashes of a split's ids (Broder, 1997, "On the resemblance and
containment of documents"). It identifies a split, and the share of its hashes among other ids
estimates the share of the split that these ids cover. `known_splits.json` holds no id and no text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SIZE = 20
LEAST = 2  # hashes in common; by chance, two do not occur


@dataclass(frozen=True)
class KnownSplit:
    """A split of a course: number of ids, and its sketch."""

    course: str
    task: str
    split: str
    count: int
    sketch: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.course}, {self.task} {self.split} ({self.count:,} ids)"


@dataclass(frozen=True)
class Recognised:
    """A known split, and the estimated share of it that the given ids cover."""

    split: KnownSplit
    share: float

    def __str__(self) -> str:
        return f"{self.split}" if self.share == 1 else f"about {self.share:.0%} of {self.split}"


def short_id(identity: str) -> str:
    """Return an id in lower case without the row number that CS224N has in front since 2024."""
    return (identity.lower().split() or [""])[-1]


def id_hash(identity: str) -> str:
    return hashlib.blake2b(short_id(identity).encode(), digest_size=5).hexdigest()


def sketch(ids: Iterable[str]) -> tuple[str, ...]:
    """Return the smallest hashes of the ids, in order."""
    return tuple(sorted({id_hash(one) for one in ids})[:SIZE])


@cache
def known_splits() -> tuple[KnownSplit, ...]:
    content = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return tuple(KnownSplit(a, b, c, n, tuple(hashes.split())) for a, b, c, n, hashes in content)


def recognise(ids: Iterable[str]) -> list[Recognised]:
    """Return the known splits that share ids with these, the best covered first."""
    own = {id_hash(one) for one in ids}
    found = []
    for known in known_splits():
        common = sum(one in own for one in known.sketch)
        if common >= min(LEAST, len(known.sketch)):
            found.append(Recognised(known, common / len(known.sketch)))
    return sorted(found, key=lambda one: (-one.share, -one.split.count))
