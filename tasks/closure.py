"""Further training pairs from labelled ones: duplicates are a graph over texts.

The duplicates of a duplicate are duplicates, and a text that differs from one member of a connected
component differs from all of its members. No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Literal

import numpy as np

from tasks.labelled_files import Source
from tasks.readers import Examples, normalise_text
from tasks.splits import ChangedTrain, keys

Closure = Literal["none", "positives", "negatives", "all"]
Pair = tuple[str, str, int]  # two texts, and whether they are duplicates (1) or not (0)


def with_closure(source: Source, others: tuple[Source, ...], closure: Closure) -> ChangedTrain:
    """Return a source of pairs with two classes, whose train split has further pairs.

    A pair in dev or test, of the source or of `others`, is left out, in either order; only letters
    and digits are compared.
    """
    return ChangedTrain(
        source, others, lambda examples, held, where: extended(examples, held, closure)
    )


def extended(examples: Examples, held: Container[frozenset[str]], closure: Closure) -> Examples:
    """Return the pairs and those that follow from them, each once, without the pairs in `held`."""
    assert examples.targets is not None, "train has labels"
    rows = zip(*examples.texts, examples.targets.tolist(), strict=True)
    candidates, contradicted = implied([row for row in rows if row[0] and row[1]], closure)
    normal = {text: normalise_text(text) for column in examples.texts for text in column}
    known, found, left_out = set(keys(examples)), list[Pair](), 0
    for first, second, label in candidates:
        key = frozenset((normal[first], normal[second]))
        if key in known:
            continue
        known.add(key)
        if key in held:
            left_out += 1
        else:
            found.append((first, second, label))
    further = [first for first, _, _ in found], [second for _, second, _ in found]
    labels = np.array([label for *_, label in found], examples.targets.dtype)
    line = (
        f"{(labels == 1).sum():,} further positive and {(labels == 0).sum():,} further negative "
        f"pairs from the closure, without {left_out:,} of dev or test; components with "
        f"contradictory labels, not extended: {contradicted:,}"
    )
    ids = [f"closure-{number}" for number in range(len(found))]
    extended = examples.followed_by(ids, further, labels)
    return replace(extended, notices=(*examples.notices, line))


def implied(labelled: Sequence[Pair], closure: Closure) -> tuple[Iterator[Pair], int]:
    """Return the pairs that follow from labelled ones, perhaps repeatedly and with these.

    A component with a pair that is labelled as different contradicts itself: it is not extended.
    The second value is the number of such components.
    """
    same = [(first, second) for first, second, label in labelled if label]
    different = [(first, second) for first, second, label in labelled if not label]
    groups = connected_groups(*zip(*same, strict=True)).tolist() if same else []
    component = {text: n for pair, n in zip(same, groups, strict=True) for text in pair}
    members: dict[int, list[str]] = {}
    for text, number in component.items():
        members.setdefault(number, []).append(text)
    sides = [(component.get(first), component.get(second)) for first, second in different]
    contradicted = {one for one, other in sides if one is not None and one == other}

    def positives() -> Iterator[Pair]:
        for number, texts in members.items():
            if number not in contradicted:
                yield from ((*pair, 1) for pair in combinations(texts, 2))

    def negatives() -> Iterator[Pair]:
        for pair, numbers in zip(different, sides, strict=True):
            if not contradicted & set(numbers):
                first, second = (
                    [text] if number is None else members[number]
                    for text, number in zip(pair, numbers, strict=True)
                )
                yield from ((*one, 0) for one in product(first, second))

    kinds = {"positives": positives, "negatives": negatives}
    chosen = [make() for name, make in kinds.items() if closure in (name, "all")]
    return chain(*chosen), len(contradicted)


def connected_groups(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """Return a group per pair, the same for pairs that share a text, directly or through others."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = {text: i for i, text in enumerate(dict.fromkeys([*left, *right]))}
    ends = [[place[text] for text in side] for side in (left, right)]
    graph = coo_array((np.ones(len(left)), ends), shape=(len(place), len(place)))
    _, component = connected_components(graph, directed=False)
    return component[ends[0]].astype(np.int64)
