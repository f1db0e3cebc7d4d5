"""Triplets of entailment data: a premise, its entailment and its contradiction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pretrain.texts import Columns, linked
from tasks.readers import Limit, clean_pair_text, drawn
from tasks.tables import rows_by_name
from tasks.text_files import DataError

TRIPLET = ("sent0", "sent1", "hard_neg")  # columns of SimCSE's published data
# Columns of SNLI, MultiNLI and GLUE: premise, hypothesis, label.
LABELLED = (
    ("sentence1", "sentence2", "gold_label"),
    ("sentence1", "sentence2", "label"),
    ("premise", "hypothesis", "label"),
)
LABELS = {"entailment": 0, "0": 0, "neutral": 1, "1": 1, "contradiction": 2, "2": 2}


def entailments(path: Path, limit: Limit = None) -> tuple[Columns, np.ndarray]:
    """Return the triplets of a CSV or TSV file and their groups; `limit` draws some at random.

    Groups have shape (n, 2). The first column groups premises and entailments that share texts. The
    second is the contradiction's group if it is also a premise or an entailment, else -1. Triplets
    with a blank text, or with a contradiction equal to one of the other texts, are skipped.

    The file has the columns sent0, sent1, hard_neg, or labelled pairs; then the i-th entailment and
    the i-th contradiction of a premise make a triplet (Gao et al., 2021, section 4). Labels are
    words, or 0, 1, 2 for entailment, neutral and contradiction. Rows with a blank label, - or -1,
    on which annotators did not agree, are skipped. Tab-separated files have no quoting.
    """
    header = columns_of(path)
    if set(TRIPLET) <= header:
        found = rows_of(path, TRIPLET)
        rows = [(row["sent0"], row["sent1"], row["hard_neg"]) for _, row in found]
    else:
        wanted = next((names for names in LABELLED if set(names) <= header), None)
        if wanted is None:
            raise DataError(
                f"{path}, line 1: expected columns {', '.join(TRIPLET)} or premise, hypothesis, "
                f"label; found {', '.join(sorted(header)) or 'none'}"
            )
        rows = list(grouped(path, wanted))
    rows = [
        cleaned
        for a, b, c in rows
        for cleaned in [(clean_pair_text(a), clean_pair_text(b), clean_pair_text(c))]
        if all(cleaned) and cleaned[2] not in cleaned[:2]
    ]
    rows = [rows[place] for place in drawn(len(rows), limit)]
    premises, follows, against = ([row[side] for row in rows] for side in range(3))
    groups = linked(premises, follows) if rows else np.zeros(0, np.int64)
    group_of = dict(zip([*premises, *follows], [*groups, *groups], strict=True))
    others = np.array([group_of.get(text, -1) for text in against], np.int64)
    return (premises, follows, against), np.stack([groups, others], axis=1)


def rows_of(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a file that is comma-separated with quotes, or tab-separated without."""
    return rows_by_name(path, needed, comma=True, quoted_tabs=False)


def columns_of(path: Path) -> set[str]:
    """Return the names in the header line."""
    for _, row in rows_of(path, ()):
        return set(row)
    raise DataError(f"{path}: expected rows under a header line, found none")


def grouped(path: Path, wanted: tuple[str, str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (premise, entailment, contradiction), premise by premise, in the order of the file."""
    premise, hypothesis, label = wanted
    found: dict[str, tuple[list[str], list[str], list[str]]] = {}
    for line, row in rows_of(path, wanted):
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
