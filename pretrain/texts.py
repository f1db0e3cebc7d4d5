"""Texts for pre-training: sentences, pairs and NLI triplets; their overlap with dev and test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from common.random_generators import generator
from tasks import build_task
from tasks.base import Task
from tasks.readers import (
    Examples,
    Limit,
    clean_pair_text,
    normalise_text,
    sample_rows,
)
from tasks.registry import SAME_MEANING
from tasks.tables import columns_of, read_sentences, rows_by_name
from tasks.text_files import DataError

TRIPLET = ("sent0", "sent1", "hard_neg")  # columns of SimCSE's published data
# Columns of SNLI, MultiNLI and GLUE: premise, hypothesis, label.
LABELLED = (
    ("sentence1", "sentence2", "gold_label"),
    ("sentence1", "sentence2", "label"),
    ("premise", "hypothesis", "label"),
)
LABELS = {"entailment": 0, "0": 0, "neutral": 1, "1": 1, "contradiction": 2, "2": 2}
Columns = tuple[list[str], ...]
Make = Callable[[Path, Limit], tuple[Columns, np.ndarray]]  # folder, limit -> texts, groups


@dataclass(frozen=True)
class Texts:
    """Training examples from `make(folder, limit)`; the dev split is that of STS.

    `make` returns one list of texts per column, and groups (n,) or (n, 2). Texts of the same group
    are not negatives of each other. The groups take the place of targets.
    """

    make: Make
    origin: str

    @property
    def splits(self) -> tuple[str, ...]:
        return ("train", "dev")

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if split == "dev":
            return build_task("sts").read(folder, "dev", limit)
        columns, groups = self.make(folder, limit)
        if len(groups) < 2:
            raise DataError(
                f"{self.where(folder, split)}: expected at least two examples, found {len(groups)}"
            )
        return Examples([str(i) for i in range(len(groups))], columns, groups)

    def where(self, folder: Path, split: str) -> str:
        return self.origin if split == "train" else build_task("sts").source.where(folder, split)


def training_sentences(tasks: Iterable[Task], folder: Path, limit: Limit = None) -> list[str]:
    """Return the distinct sentences of these tasks' training files; `limit` counts per task."""
    found: dict[str, None] = {}
    for task in tasks:
        for column in task.read(folder, "train", limit).texts:
            found |= dict.fromkeys(text for text in column if text)
    return list(found)


def sentences(tasks: Iterable[Task], folder: Path, limit: Limit) -> tuple[Columns, np.ndarray]:
    """Return each sentence paired with itself: two views, which differ by dropout."""
    column = training_sentences(tasks, folder, limit)
    return (column, column), np.arange(len(column))


def positive_pairs(names: Sequence[str], folder: Path, limit: Limit) -> tuple[Columns, np.ndarray]:
    """Return the positive pairs of these tasks and the groups that these pairs link."""
    left: list[str] = []
    right: list[str] = []
    for name in names:
        examples = build_task(name).read(folder, "train", limit)
        assert examples.targets is not None
        for row in np.flatnonzero(examples.targets >= SAME_MEANING[name]):
            if examples.texts[0][row] and examples.texts[1][row]:
                left.append(examples.texts[0][row])
                right.append(examples.texts[1][row])
    return (left, right), connected_groups(left, right)


def connected_groups(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """Return a group per pair, the same for pairs that share a text, directly or through others."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = {text: i for i, text in enumerate(dict.fromkeys([*left, *right]))}
    ends = [[place[text] for text in side] for side in (left, right)]
    graph = coo_array((np.ones(len(left)), ends), shape=(len(place), len(place)))
    _, component = connected_components(graph, directed=False)
    return component[ends[0]].astype(np.int64)


def pairs_with_negatives(
    pairs_of: Make,
    pool_of: Callable[[Path, Limit], list[str]] | None,
    origin: str,
    seed: int,
    folder: Path,
    limit: Limit,
) -> tuple[Columns, np.ndarray]:
    """Return the pairs, each with a random sentence that is not in its group.

    The sentence is drawn from `pool_of` or, if that is None, from the other pairs. Groups (n, 2)
    are the pair's and the sentence's, -1 for a sentence without a group.
    """
    (left, right), groups = pairs_of(folder, limit)
    group_of = dict(zip([*left, *right], [*groups, *groups], strict=True))
    pool = pool_of(folder, limit) if pool_of else list(group_of)
    outside = np.array([group_of.get(text, -1) for text in pool])
    draw = generator(seed, "out-of-sample negatives")
    chosen = draw.integers(len(pool) or 1, size=len(groups))
    alike = len(np.unique(outside)) == 1
    for row in np.flatnonzero(outside[chosen] == groups):
        if alike:
            raise DataError(f"{origin}: expected sentences outside of the pairs' group, found none")
        while outside[chosen[row]] == groups[row]:
            chosen[row] = draw.integers(len(pool))
    negatives = [pool[row] for row in chosen]
    return (left, right, negatives), np.stack([groups, outside[chosen]], axis=1)


def read_texts(
    file: str, column: str | None, folder: Path, limit: Limit
) -> tuple[Columns, np.ndarray]:
    """Return the distinct sentences of a file, each paired with itself; `limit` draws some.

    Sentences that differ only in case and spaces have the same group. Raises DataError if all do,
    because nothing can be learnt from them.
    """
    distinct = dict.fromkeys(map(str.strip, read_sentences(Path(file), column)))
    found = [text for text in distinct if text]
    found = [found[row] for row in sample_rows(len(found), limit)]
    place: dict[str, int] = {}
    groups = np.array([place.setdefault(without_case(text), len(place)) for text in found])
    if len(found) > 1 and len(place) == 1:
        line = "expected sentences that differ in more than case and spaces, found none"
        raise DataError(f"{file}: {line}")
    return (found, found), groups


def without_case(text: str) -> str:
    """Return a text in lower case with single spaces, as many encoders read it."""
    return " ".join(text.lower().split())


def read_pairs(
    file: str, names: tuple[str, str], folder: Path, limit: Limit
) -> tuple[Columns, np.ndarray]:
    """Return the distinct pairs of a file with two texts; `limit` draws some at random.

    Pairs that share a text, directly or through others, have the same group; texts are compared
    without case and repeated spaces. Raises DataError for fewer than two groups, from which nothing
    can be learnt.
    """
    path = Path(file)
    count = 0
    pairs: dict[tuple[str, str], None] = {}  # the rows' other columns may be long
    for _, row in rows_by_name(path, names):
        count += 1
        pairs[row[names[0]].strip(), row[names[1]].strip()] = None
    found = [pair for pair in pairs if all(pair)]
    found = [found[row] for row in sample_rows(len(found), limit)]
    if len(found) < 2:
        raise DataError(
            f"{path}: expected two different pairs with both texts, found {len(found)} "
            f"in {count} rows"
        )
    left, right = [one for one, _ in found], [other for _, other in found]
    groups = connected_groups(*(list(map(without_case, side)) for side in (left, right)))
    if (groups == groups[0]).all():
        raise DataError(
            f"{path}: expected pairs of at least two groups, found all {len(groups):,} linked by "
            "shared texts"
        )
    return (left, right), groups


def read_nli_triplets(path: Path, limit: Limit = None) -> tuple[Columns, np.ndarray]:
    """Return the triplets of a CSV or TSV file and their groups; `limit` draws some at random.

    Groups have shape (n, 2). The first column groups premises and entailments that share texts. The
    second is the contradiction's group if it is also a premise or an entailment, else -1. Triplets
    with a blank text, or with a contradiction equal to one of the other texts, are skipped.

    The file has the columns sent0, sent1, hard_neg, or labelled pairs; then the i-th entailment and
    the i-th contradiction of a premise make a triplet (Gao et al., 2021, section 4). Labels are
    words, or 0, 1, 2 for entailment, neutral and contradiction. Rows with a blank label, - or -1,
    on which annotators did not agree, are skipped. Tab-separated files have no quoting.
    """
    columns = {*columns_of(path, quoted_tabs=False)}
    if {*TRIPLET} <= columns:
        rows = [tuple(row[name] for name in TRIPLET) for _, row in nli_rows(path, TRIPLET)]
    else:
        wanted = next((names for names in LABELLED if {*names} <= columns), None)
        if wanted is None:
            raise DataError(
                f"{path}, line 1: expected columns {', '.join(TRIPLET)} or premise, hypothesis, "
                f"label; found {', '.join(sorted(columns)) or 'none'}"
            )
        rows = list(triplets_of_pairs(path, wanted))
    rows = [tuple(map(clean_pair_text, row)) for row in rows]
    rows = [row for row in rows if all(row) and row[2] not in row[:2]]
    if not rows:
        expected = "premises with an entailment and a contradiction, all different"
        raise DataError(f"{path}: expected {expected}, found none")
    rows = [rows[place] for place in sample_rows(len(rows), limit)]
    premises, follows, against = ([row[side] for row in rows] for side in range(3))
    groups = connected_groups(premises, follows)
    group_of = dict(zip([*premises, *follows], [*groups, *groups], strict=True))
    others = np.array([group_of.get(text, -1) for text in against], np.int64)
    return (premises, follows, against), np.stack([groups, others], axis=1)


# Comma-separated with quotes, or tab-separated without.
nli_rows = partial(rows_by_name, quoted_tabs=False)


def triplets_of_pairs(path: Path, columns: tuple[str, str, str]) -> Iterator[tuple[str, ...]]:
    """Yield (premise, entailment, contradiction), premise by premise, in the order of the file."""
    premise, hypothesis, label = columns
    found: dict[str, tuple[list[str], list[str], list[str]]] = {}
    for line, row in nli_rows(path, columns):
        text = row[label].strip().lower().removesuffix(".0")
        if text in ("-", "-1", ""):
            continue
        if text not in LABELS:
            raise DataError(
                f"{path}, line {line}: {label}: expected entailment, neutral or contradiction, "
                f"found {row[label]!r}"
            )
        found.setdefault(row[premise], ([], [], []))[LABELS[text]].append(row[hypothesis])
    for text, (follows, _, against) in found.items():
        for one, other in zip(follows, against, strict=False):
            yield text, one, other


def overlap(known: Set[str], folder: Path, task: Task) -> dict[str, int]:
    """Count the distinct sentences of a task's dev and test that are among `known` ones."""
    return {
        split: len(distinct_texts(task.read(folder, split).texts) & known)
        for split in task.source.splits
        if split != "train"
    }


def distinct_texts(columns: Iterable[Sequence[str]]) -> set[str]:
    """Return the distinct texts as `normalise_text` returns them, without the empty one."""
    return {normalise_text(text) for column in columns for text in column} - {""}
