"""The leak audit: which sentences and pairs of dev and test are in the training text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.tables import Table
from tasks import build_task
from tasks.base import Task
from tasks.readers import normalise_text
from tasks.splits import existing_files
from tasks.tables import DataError

# Held-out split -> its number of distinct texts, and how many of them each other corpus has; None
# stands for the split itself.
Counts = dict[str, dict[str, int | None]]


@dataclass(frozen=True)
class TextSet:
    """Distinct sentences and unordered pairs of a corpus.

    Sentences are compared by `normalise_text`, regardless of case and punctuation.
    """

    name: str
    sentences: frozenset[str]
    pairs: frozenset[frozenset[str]]


def text_set(name: str, texts: Sequence[Sequence[str]]) -> TextSet:
    """Build a set from columns of texts; blank texts are left out."""
    columns = [[normalise_text(text) for text in column] for column in texts]
    sentences = frozenset(text for column in columns for text in column if text)
    pairs = (
        frozenset(frozenset(pair) for pair in zip(*columns[:2], strict=True) if all(pair))
        if len(columns) > 1
        else frozenset()
    )
    return TextSet(name, sentences, pairs)


def read_text_sets(
    tasks: Sequence[str | Task], folder: Path
) -> tuple[list[TextSet], list[TextSet], list[str]]:
    """Return training sets, held-out sets, and the errors of files that cannot be read.

    A split without a file is left out.
    """
    seen: list[TextSet] = []
    held: list[TextSet] = []
    damaged = []
    for one in tasks:
        task = build_task(one) if isinstance(one, str) else one
        for split in existing_files(task.source, folder):
            try:
                examples = task.read(folder, split)
            except DataError as error:
                damaged.append(str(error))
                continue
            part = text_set(f"{task.name} {split}", examples.texts)
            (seen if split == "train" else held).append(part)
    return seen, held, damaged


def audit(
    tasks: Sequence[str | Task],
    folder: Path,
    further: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> tuple[dict[str, Counts], list[str]]:
    """Return the counts of `sentences` and `pairs`, and one error line per unreadable file.

    `tasks` are names, or tasks with their own files. `further` are other training texts by name,
    such as those of pre-training. Test splits are also compared with dev, which selects the best
    epoch.
    """
    seen, held, damaged = read_text_sets(tasks, folder)
    seen += [text_set(name, texts) for name, texts in (further or {}).items()]
    dev = [part for part in held if part.name.endswith(" dev")]

    def count(one: TextSet, kind: str) -> dict[str, int | None]:
        own = getattr(one, kind)
        shared = {o.name: None if o is one else len(own & getattr(o, kind)) for o in seen + dev}
        return {"distinct": len(own), **shared}

    sentences = {one.name: count(one, "sentences") for one in held}
    pairs = {one.name: count(one, "pairs") for one in held if one.pairs}
    return {"sentences": sentences, "pairs": pairs}, damaged


def leak_table(counts: Counts) -> Table:
    """Return a table with a row for each held-out split and a column for each other corpus."""
    header = ["held out", *next(iter(counts.values()), {})]
    rows = [
        [name, *("" if n is None else f"{n:,}" for n in found.values())]
        for name, found in counts.items()
    ]
    return header, rows
