"""The leak audit: which sentences and pairs of dev and test are in the training text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.tables import Table
from tasks import build_task
from tasks.readers import normalise_text
from tasks.text_files import DataError, file_exists


@dataclass(frozen=True)
class Part:
    """Distinct sentences and unordered pairs of a corpus.

    Sentences are equal if their letters and digits are, regardless of case and punctuation.
    """

    name: str
    sentences: frozenset[str]
    pairs: frozenset[frozenset[str]]


def part_of(name: str, texts: Sequence[Sequence[str]]) -> Part:
    """Build a part from columns of texts; blank texts are left out."""
    columns = [[normalise_text(text) for text in column] for column in texts]
    sentences = frozenset(text for column in columns for text in column if text)
    pairs = (
        frozenset(frozenset(pair) for pair in zip(*columns[:2], strict=True) if all(pair))
        if len(columns) > 1
        else frozenset()
    )
    return Part(name, sentences, pairs)


def parts_of_data(tasks: Sequence[str], folder: Path) -> tuple[list[Part], list[Part], list[str]]:
    """Return training parts, held-out parts, and the errors of files that cannot be read.

    A split without a file is left out.
    """
    seen: list[Part] = []
    held: list[Part] = []
    damaged = []
    for name in tasks:
        task = build_task(name)
        for split in task.source.splits:
            if not file_exists(Path(task.source.where(folder, split))):
                continue
            try:
                examples = task.read(folder, split)
            except DataError as error:
                damaged.append(str(error))
                continue
            part = part_of(f"{name} {split}", examples.texts)
            (seen if split == "train" else held).append(part)
    return seen, held, damaged


def audit(
    tasks: Sequence[str], folder: Path, further: Mapping[str, Sequence[Sequence[str]]] | None = None
) -> tuple[Table, Table, list[str]]:
    """Return the tables of sentences and of pairs, and one error line per unreadable file.

    A table has one row per held-out split and one column per training corpus. `further` are other
    training texts by name, such as those of pre-training. Test splits are also compared with dev,
    which selects the best epoch.
    """
    seen, held, damaged = parts_of_data(tasks, folder)
    seen += [part_of(name, texts) for name, texts in (further or {}).items()]
    dev = [part for part in held if part.name.endswith(" dev")]
    columns = seen + dev
    header = ["held out", "distinct", *(part.name for part in columns)]
    sentences, pairs = [], []
    for one in held:
        rest = [None if other is one else other for other in columns]
        sentences.append(
            [
                one.name,
                f"{len(one.sentences):,}",
                *("" if o is None else f"{len(one.sentences & o.sentences):,}" for o in rest),
            ]
        )
        if one.pairs:
            pairs.append(
                [
                    one.name,
                    f"{len(one.pairs):,}",
                    *("" if o is None else f"{len(one.pairs & o.pairs):,}" for o in rest),
                ]
            )
    return (header, sentences), (header, pairs), damaged
