"""Texts for pre-training: sentences, pairs and NLI triplets, and which of them are alike.

A reader returns columns of n texts, and groups (n,) or (n, 2). Texts of the same group are not
negatives of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks import SAME_MEANING, build_task
from tasks.base import Task
from tasks.csv_files import Layout
from tasks.readers import Examples, LabelledFiles, Limit, class_parser, clean_pair_text, sample_rows
from tasks.tables import DataError, read_sentences, read_table

TRIPLET = ("sent0", "sent1", "hard_neg")  # columns of SimCSE's published data
# Columns of SNLI, MultiNLI and GLUE: premise, hypothesis, label.
LABELLED = (
    ("sentence1", "sentence2", "gold_label"),
    ("sentence1", "sentence2", "label"),
    ("premise", "hypothesis", "label"),
)
CLASSES = ("entailment", "neutral", "contradiction")
LABELS = {name: n for n, one in enumerate(CLASSES) for name in (one, str(n))} | {"-1": None}
Columns = tuple[list[str], ...]
Make = Callable[[Path, Limit], tuple[Columns, np.ndarray]]  # folder, limit -> texts, groups


@dataclass(frozen=True)
class Texts:
    """Training examples from `make(folder, limit)`, with the groups as targets.

    The dev split is that of STS.
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
        if len(np.unique(groups if groups.ndim == 1 else groups[:, 0])) < 2:
            line = "training needs two examples that share no text (case and spaces do not count)"
            raise DataError(f"{self.origin}: {line}, found none among {len(groups)}")
        return Examples([str(i) for i in range(len(groups))], columns, groups)

    def where(self, folder: Path, split: str) -> str:
        return self.origin if split == "train" else build_task("sts").source.where(folder, split)


def sentences(tasks: Iterable[Task], folder: Path, limit: Limit) -> tuple[Columns, np.ndarray]:
    """Return the distinct sentences of these tasks' training files; `limit` counts per task.

    Each is paired with itself: two views, which differ by dropout.
    """
    found: dict[str, None] = {}
    for task in tasks:
        for column in task.read(folder, "train", limit).texts:
            found |= dict.fromkeys(text for text in column if text)
    column = list(found)
    return (column, column), np.arange(len(column))


def positive_pairs(names: Sequence[str], folder: Path, limit: Limit) -> tuple[Columns, np.ndarray]:
    """Return the pairs of these tasks that have the same meaning by their labels."""
    pairs: list[tuple[str, ...]] = []
    for name in names:
        examples = build_task(name).read(folder, "train", limit)
        assert examples.targets is not None
        same = np.flatnonzero(examples.targets >= SAME_MEANING[name])
        pairs += [tuple(column[row] for column in examples.texts) for row in same]
    left, right = in_columns([pair for pair in pairs if all(pair)], 2)
    return (left, right), connected_groups(left, right)


def file_texts(
    file: str, names: Sequence[str], folder: Path, limit: Limit
) -> tuple[Columns, np.ndarray]:
    """Return the distinct sentences of a file, each paired with itself, or its distinct pairs.

    `names` are two columns of pairs, one column of sentences, or none for the lines of a text file.
    `limit` draws some at random. Pairs that share a text, directly or through others, have the same
    group; texts are compared without case and repeated spaces.
    """
    if len(names) == 2:
        found = read_table(Path(file)).fields(names)
        fields = (tuple(row[name] for name in names) for _, row in found)
    else:
        fields = ((text,) for text in read_sentences(Path(file), names[0] if names else None))
    distinct = dict.fromkeys(tuple(map(str.strip, row)) for row in fields)
    rows = [row for row in distinct if all(row)]
    columns = in_columns([rows[place] for place in sample_rows(len(rows), limit)], len(names) or 1)
    left, right = columns[0], columns[-1]
    return (left, right), connected_groups(*(list(map(without_case, c)) for c in (left, right)))


def without_case(text: str) -> str:
    """Return a text in lower case with single spaces, as many encoders read it."""
    return " ".join(text.lower().split())


def in_columns(rows: Sequence[tuple[str, ...]], count: int) -> Columns:
    """Return the `count` columns of rows, of which there may be none."""
    return tuple([row[place] for row in rows] for place in range(count))


def connected_groups(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """Return a group per pair, the same for pairs that share a text, directly or through others."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    place = {text: i for i, text in enumerate(dict.fromkeys([*left, *right]))}
    ends = [[place[text] for text in side] for side in (left, right)]
    graph = coo_array((np.ones(len(left)), ends), shape=(len(place), len(place)))
    _, component = connected_components(graph, directed=False)
    return component[ends[0]].astype(np.int64)


def read_nli_triplets(path: Path, limit: Limit = None) -> tuple[Columns, np.ndarray]:
    """Return the triplets of a CSV or TSV file and their groups; `limit` draws some at random.

    Groups have shape (n, 2). The first column groups premises and entailments that share texts. The
    second is the contradiction's group if it is also a premise or an entailment, else -1. Triplets
    with a blank text, or with a contradiction equal to one of the other texts, are skipped.

    The file has the columns sent0, sent1, hard_neg, or labelled pairs. Quotation
    marks are ordinary characters unless its name ends in .csv.
    """
    layout = Layout(quotes=None if path.suffix.lower() == ".csv" else False)
    table = read_table(path, layout)
    columns = {*table.columns}
    labelled = next((names for names in LABELLED if {*names} <= columns), None)
    if {*TRIPLET} <= columns or labelled is None:
        rows = [tuple(map(clean_pair_text, row.values())) for _, row in table.fields(TRIPLET)]
    else:
        rows = list(triplets_of_pairs(path, labelled, layout))
    rows = [row for row in rows if all(row) and row[2] not in row[:2]]
    rows = [rows[place] for place in sample_rows(len(rows), limit)]
    premises, follows, against = in_columns(rows, 3)
    groups = connected_groups(premises, follows)
    group_of = dict(zip([*premises, *follows], [*groups, *groups], strict=True))
    others = np.array([group_of.get(text, -1) for text in against], np.int64)
    return (premises, follows, against), np.stack([groups, others], axis=1)


def triplets_of_pairs(
    path: Path, names: tuple[str, str, str], layout: Layout
) -> Iterator[tuple[str, ...]]:
    """Yield (premise, entailment, contradiction), premise by premise, in the order of the file.

    The i-th entailment and the i-th contradiction of a premise make a triplet (Gao et al., 2021,
    section 4). Labels are words, or 0, 1, 2. Rows with a blank label, - or -1, on which annotators
    did not agree, are skipped.
    """
    pairs = LabelledFiles(
        files=({"train": str(path), "dev": str(path)},),
        text_columns=names[:2],
        label_columns=names[2:],
        parse_label=class_parser(LABELS),
        clean_text=clean_pair_text,
        id_column=None,
        layout=layout,
    ).read(Path(), "train")
    found: dict[str, tuple[list[str], list[str], list[str]]] = {}
    assert pairs.targets is not None
    for premise, hypothesis, label in zip(*pairs.texts, pairs.targets, strict=True):
        found.setdefault(premise, ([], [], []))[label].append(hypothesis)
    for premise, (follows, _, against) in found.items():
        for one, other in zip(follows, against, strict=False):
            yield premise, one, other
