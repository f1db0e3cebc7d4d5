"""Completion of a user's task description from its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import is_unsafe
from tasks.described import FILES, DescriptionError, TaskDescription, listed
from tasks.readers import to_number
from tasks.tables import columns_of, rows_by_name
from tasks.text_files import DataError, file_exists

SPLITS = {"train": ("train",), "dev": ("dev", "validation", "valid"), "test": ("test",)}
ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
MOST_CLASSES = 1000
MANY_NUMBERS = 20  # different whole numbers, above which they rarely name classes


def complete_description(name: str, description: Mapping[str, Any]) -> TaskDescription:
    """Return the complete description of a task; read missing labels from the training file.

    Raises DescriptionError, or DataError with the file and line of invalid data.
    """
    files = {key: description[key] for key in FILES if description.get(key)}
    if len(files) == 1:
        files = in_folder(files["train"])
    for key, file in files.items():
        if not file_exists(Path(file)):
            raise DataError(f"{file}: expected the file {key} of {name}, found none")
    common: dict[str, Any] = {
        "name": name,
        "type": description["type"],
        "texts": tuple(description["text"]),
        "label": description["label"],
        "id": description.get("id"),
        "joint": description.get("pair") == "joint",
        "quotes": description.get("quotes", "yes") in ("yes", True),
        "train": files["train"],
        "dev": files.get("dev"),
        "test": files.get("test"),
    }
    quotes = common["quotes"]
    found = labels_of(Path(files["train"]), description["label"], quotes)
    if "test" in files:
        test = Path(files["test"])
        common["test_labels"] = description["label"] in columns_of(test, by_commas(test), quotes)
        if not common["test_labels"] and "dev" not in files:
            raise DescriptionError(
                f"{name}: test: expected a file with labels, or also a file for dev, found "
                f"{files['test']} without a column {description['label']!r}"
            )
    if description["type"] == "classification":
        labels = tuple(description["labels"]) or classes(name, files, found)
        check_labels(name, labels)
        return TaskDescription(**common, labels=labels)
    low, high = bounds(description, *scale(Path(files["train"]), found))
    return TaskDescription(**common, low=low, high=high)


def in_folder(place: str) -> dict[str, str]:
    """Return the files of a folder by split; a file is returned as train.

    A folder has `train.csv`, and `dev.csv` or `validation.csv` and `test.csv`, with any ending of
    `ENDINGS`, or shards `data/train-*.parquet`, or was saved by the library datasets.
    """
    folder = Path(place)
    if not folder.is_dir() or (folder / "state.json").exists():  # a split saved by datasets
        return {"train": place}
    found: dict[str, str] = {}
    for split, names in SPLITS.items():
        for name in names:
            if (folder / name / "state.json").exists():
                found.setdefault(split, str(folder / name))
            for ending in ENDINGS:
                if (folder / f"{name}{ending}").exists():
                    found.setdefault(split, str(folder / f"{name}{ending}"))
            for shards in (folder, folder / "data"):
                if any(shards.glob(f"{name}-*.parquet")):
                    found.setdefault(split, str(shards / f"{name}-*.parquet"))
    if "train" not in found:
        raise DataError(f"{folder}: expected a file train.csv or the like, found none")
    return found


def labels_of(file: Path, column: str, quotes: bool) -> Iterator[tuple[int, str]]:
    """Yield (line, label) of each row with a label."""
    for line, row in rows_by_name(file, [column], by_commas(file), quotes):
        if label := row[column].strip():
            yield line, label


def by_commas(file: Path) -> bool:
    """Return whether commas separate fields, unless the header contains a tab."""
    return file.suffix.lower() != ".tsv"


def check_labels(name: str, labels: Sequence[str]) -> None:
    """Raise DataError for repeated labels and labels that would break the prediction file."""
    for label in labels:
        if not label or " , " in label or any(is_unsafe(letter) for letter in label):
            raise DataError(
                f"{name}: expected labels without ' , ' and line breaks, not blank, found {label!r}"
            )
        if labels.count(label) > 1:
            raise DataError(f"{name}: expected unique labels, found {label!r} twice")


def classes(
    name: str, files: Mapping[str, str], found: Iterator[tuple[int, str]]
) -> tuple[str, ...]:
    """Return the distinct labels, sorted as numbers if all are numbers, else as text."""
    distinct: dict[str, int] = {}
    for line, label in found:
        distinct.setdefault(label, line)
        if len(distinct) > MOST_CLASSES:
            raise DataError(
                f"{files['train']}, line {line}: expected at most {MOST_CLASSES} classes, found "
                f"one more, {label!r}; type=similarity is for numbers"
            )
    if len(distinct) < 2:
        some = ", ".join(distinct) or "none"
        raise DataError(f"{files['train']}: {name}: expected two classes or more, found {some}")
    numbers = [to_number(label) for label in distinct]
    if all(number is not None for number in numbers):
        return tuple(sorted(distinct, key=float))
    return tuple(sorted(distinct))


def scale(file: Path, found: Iterator[tuple[int, str]]) -> tuple[float, float]:
    """Return the lowest and the highest label."""
    low, high = float("inf"), float("-inf")
    for line, label in found:
        value = to_number(label)
        if value is None:
            raise DataError(f"{file}, line {line}: expected a number, found {label!r}")
        low, high = min(low, value), max(high, value)
    if not low < high:
        raise DataError(f"{file}: expected two different similarities, found none or one")
    return low, high


def bounds(description: Mapping[str, Any], low: float, high: float) -> tuple[float, float]:
    """Return the given bounds of the scale, replacing missing ones by those of the file."""
    low = low if description.get("low") is None else description["low"]
    high = high if description.get("high") is None else description["high"]
    if not low < high:
        raise DescriptionError(f"expected low below high, found low={low:g} and high={high:g}")
    return low, high


def description_lines(described: TaskDescription) -> Iterator[str]:
    """Yield what a task predicts from which columns, and a notice about doubtful labels."""
    columns = " and ".join(map(repr, described.texts))
    if described.type == "similarity":
        scale = f"{described.low:g} to {described.high:g}"
        yield f"similarity of {columns}, from {scale}, in column {described.label!r}"
        return
    count = f"{len(described.labels)} classes in column {described.label!r}"
    yield f"classification of {columns}, {count}: {listed(described.labels, 10)}"
    numbers = [value for label in described.labels if (value := to_number(label)) is not None]
    words = [label for label in described.labels if to_number(label) is None]
    if numbers and words:
        yield (
            f"labels are numbers and words ({len(numbers)} numbers; {listed(words)}): each is a "
            "class of its own; correct the column if that is not meant"
        )
    elif len(numbers) > MANY_NUMBERS or not all(one.is_integer() for one in numbers):
        cure = (
            "type=similarity learns them as numbers"
            if len(described.texts) == 2
            else ("for one text only classes can be learned: join numbers into a few classes")
        )
        yield f"labels look like numbers on a scale, but are classes without an order; {cure}"
