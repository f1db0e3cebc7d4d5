"""Train, dev and test derived from a task's files: changed, filtered or split examples."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import counted
from tasks.base import Task
from tasks.kinds import known_rows
from tasks.predictions import PredictionFile
from tasks.readers import Examples, LabelledFiles, Limit, Source
from tasks.tables import DataError

FEW = 10  # smallest number of examples whose scale is compared
CORE = (0.1, 0.9)  # quantiles between which the numbers of a split are compared
DEV, MOST_DEV = 0.1, 10_000  # share of the training file, and most examples

# (examples of the source's split, the new split, the data folder) -> its examples.
Make = Callable[[Examples, str, Path], Examples]


@dataclass(frozen=True)
class Derived:
    """Splits that a function derives from another source's; `origin` maps new ones to these."""

    source: Source
    make: Make
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.origin) or self.source.splits

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        examples = self.source.read(folder, self.origin.get(split, split))
        return self.make(examples, split, folder).sample(limit)

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, self.origin.get(split, split))


def without_leaks(source: Source, others: tuple[Source, ...]) -> Derived:
    """Leave out training examples that are also in dev or test, of the source or of `others`.

    Texts are compared by `normalise_text`. In a pair both must be equal, in either order.
    """

    def make(examples: Examples, split: str, folder: Path) -> Examples:
        if split != "train":
            return examples
        every = [(one, part) for one in (source, *others) for part in existing_files(one, folder)]
        rest = [one.read(folder, part) for one, part in every if part != "train"]
        held = {key for one in rest for key in keys(one)}
        fresh = np.array([key not in held for key in keys(examples)], bool)
        if not fresh.any():
            where = source.where(folder, split)
            raise DataError(f"{where}: every training example is also in dev or test")
        return replace(examples.select(np.flatnonzero(fresh)), leaked=int((~fresh).sum()))

    return Derived(source, make)


def text_hash(texts: Sequence[str]) -> int:
    """Return a 64-bit hash of an example's texts after `normalise_text`, in any order."""
    joined = "\n".join(sorted({normalise_text(text) for text in texts}))
    return int.from_bytes(hashlib.blake2b(joined.encode(), digest_size=8).digest(), "big")


# Accents that are still apart after composition, and selectors of a symbol's form.
IGNORED = re.compile("[\u0300-\u036f\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def normalise_text(text: str) -> str:
    """Return the letters, vowel signs and digits of a text in lower case, or else its symbols.

    Texts count as equal if these are.
    """
    text = text.lower()
    found = "".join(filter(str.isalnum, text))
    if text.isascii() and found:
        return found
    text = IGNORED.sub("", unicodedata.normalize("NFC", text))
    kept = ("Mn", "Mc") if found else ("Sc", "Sk", "Sm", "So")  # Unicode's marks and symbols
    return "".join(c for c in text if c.isalnum() or unicodedata.category(c) in kept)


def existing_files(source: Source, folder: Path) -> dict[str, Path]:
    """Return the file of each split that has one."""
    files = {split: Path(source.where(folder, split)) for split in source.splits}
    return {split: file for split, file in files.items() if file.exists()}


def keys(examples: Examples) -> list[frozenset[str]]:
    """Return the set of normalised texts of each example, which identifies it."""
    rows = zip(*examples.texts, strict=True)
    return [frozenset(map(normalise_text, texts)) for texts in rows]


def reading_notices(task: Task, folder: Path, splits: Mapping[str, Examples]) -> Iterator[str]:
    """Yield what was left out when the splits of a task were read."""
    for split, examples in splits.items():
        if examples.leaked:
            yield f"left out, also in dev or test: {counted(examples.leaked, 'training example')}"
        if blank := examples.blank_rows:
            where = task.source.where(folder, split)
            yield f"skipped {counted(blank, 'row')} without label or text in {where}"


def doubts(task: Task, splits: Mapping[str, Examples]) -> Iterator[str]:
    """Yield what about the splits may not be meant: equal examples, and other scales."""
    train, known = splits["train"], {split: keys(one) for split, one in splits.items()}
    cure, parts = "--drop-leaks own leaves them out of train", list[str]()
    for split, other in (("dev", "train"), ("test", "train"), ("test", "dev")):
        held = {*known.get(other, ())}
        if count := sum(key in held for key in known.get(split, ())):
            examples = counted(len(known[split]), f"{split} example")
            parts.append(f"also in {other}: {count:,} of {examples}")
        parts += [cure] if parts and (split, other) == ("test", "train") else []
    labels: dict[tuple[str, ...], set[str]] = {}
    assert train.targets is not None, "train has labels"
    for *texts, target in zip(*train.texts, train.targets, strict=True):
        labels.setdefault(tuple(map(normalise_text, texts)), set()).add(str(target))
    if twice := sum(len(found) > 1 for found in labels.values()):
        parts.append(f"train texts with several labels: {twice:,}")
    if parts:
        yield "; ".join(parts)
    if task.kind.columns is None and task.output is not None:
        yield from other_scales(task.output, {n: one.targets for n, one in splits.items()})


def other_scales(output: PredictionFile, targets: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for numbers of train, dev or test that seem to be on another scale."""
    numbers = {split: one[known_rows(one)] for split, one in targets.items() if one is not None}
    numbers = {split: one for split, one in numbers.items() if len(one) >= FEW}
    if output.scale:
        numbers["the scale"] = np.array(output.scale, np.float64)
    for split, other in (("train", "the scale"), ("dev", "train"), ("test", "train")):
        if {split, other} <= numbers.keys():
            both = {name: numbers[name] for name in (split, other)}
            core = (0, 1) if other == "the scale" else CORE
            less, more = sorted(np.ptp(np.quantile(one, core)) for one in both.values())
            ends = {name: map(output.show, (one.min(), one.max())) for name, one in both.items()}
            shown = ", of ".join(f"{name} from {' to '.join(one)}" for name, one in ends.items())
            if 0 < 4 * less < more:
                yield f"numbers of {shown}: bring them to one scale"


# (a hash of each example's texts) -> the rows of train and of parts held out of it.
Rule = Callable[[np.ndarray], Mapping[str, np.ndarray]]


def split_file(source: LabelledFiles, rule: Rule) -> Derived:
    """Split the training file by a rule; dev and test are parts of it unless they have files."""

    def make(examples: Examples, split: str, folder: Path) -> Examples:
        whole, several = source.where(folder, "train"), source.split_column is not None
        held = [one for one in ("dev", "test") if source.where(folder, one) == whole]
        held = [one for one in held if not several or one in source.in_train]
        parts = ("train", *held) if held else ()
        return split_by(examples, rule, whole)[split] if split in parts else examples

    return Derived(source, make)


def split_by(examples: Examples, rule: Rule, where: str) -> dict[str, Examples]:
    """Return train, and the parts that a rule holds out; raise DataError if one is empty."""
    texts = zip(*examples.texts, strict=True)
    found = rule(np.fromiter(map(text_hash, texts), np.uint64, len(examples)))
    for split, rows in found.items():
        if not len(rows):
            expected = f"the file is too small: no example is left for {split}"
            cure = "add rows, or name files for dev and test"
            raise DataError(f"{where}: {expected} ({len(examples):,} in all); {cure}")
    every = {split: examples.select(np.sort(rows)) for split, rows in found.items()}
    reported = {split: examples.blank_rows * (split == "train") for split in every}  # once
    return {split: replace(one, blank_rows=reported[split]) for split, one in every.items()}


def shares(known: np.ndarray, test: float | None = None) -> dict[str, np.ndarray]:
    """Hold out a tenth as dev, at most 10,000 examples, and perhaps a share as test."""
    sizes = {} if test is None else {"test": max(1, round(test * len(known)))}
    return deal(known, {**sizes, "dev": min(MOST_DEV, max(1, round(DEV * len(known))))})


def by_hash(known: np.ndarray, test: bool) -> dict[str, np.ndarray]:
    """Hold out a tenth as dev, and perhaps one as test; a text is on the same side in all files."""
    part = np.array([*["train"] * 8, "dev", "test" if test else "train"])[known % 10]
    splits = ("train", "dev", "test") if test else ("train", "dev")
    return {split: np.flatnonzero(part == split) for split in splits}


def deal(known: np.ndarray, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Hold out parts of at most these sizes, always the same; rows of one hash are in one part."""
    order = np.random.default_rng(0).permutation(len(known))
    _, group, counts = np.unique(known, return_inverse=True, return_counts=True)
    part = np.zeros(len(counts), np.int64)
    for number, size in enumerate(sizes.values(), 1):
        room = size
        for row in order:
            if not room:
                break
            if not part[group[row]] and counts[group[row]] <= room:
                part[group[row]] = number
                room -= counts[group[row]]
    return {
        split: np.flatnonzero(part[group] == number)
        for number, split in enumerate(("train", *sizes))
    }
