"""Values that occur more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def repeated(values: Iterable[T]) -> list[T]:
    """Return each value that occurs more than once, in the order of the first occurrences."""
    return [value for value, count in Counter(values).items() if count > 1]
