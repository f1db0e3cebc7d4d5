"""What a description of an own task leaves open is looked up in its files, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import harmful
from tasks.described import FILES, Described, DescriptionError
from tasks.readers import to_number
from tasks.text_files import DataError, columns_of, is_there, rows_by_name

SPLITS = {"train": ("train",), "dev": ("dev", "validation", "valid"), "test": ("test",)}
ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
MOST_CLASSES = 1000


def settle(name: str, given: Mapping[str, Any]) -> Described:
    """The task that a description means; reads the labels of the training file.

    Raises DescriptionError, or DataError with the file and line of what cannot be used.
    """
    files = {key: given[key] for key in FILES if given.get(key)}
    if len(files) == 1:
        files = in_folder(files["train"])
    for key, file in files.items():
        if not is_there(Path(file)):
            raise DataError(f"{file}: expected the file {key} of {name}, found none")
    common: dict[str, Any] = {
        "name": name,
        "type": given["type"],
        "texts": tuple(given["text"]),
        "label": given["label"],
        "id": given.get("id"),
        "joint": given.get("pair") == "joint",
        "quotes": given.get("quotes", "yes") in ("yes", True),
        "train": files["train"],
        "dev": files.get("dev"),
        "test": files.get("test"),
    }
    quotes = common["quotes"]
    found = labels_of(Path(files["train"]), given["label"], quotes)
    if "test" in files:
        test = Path(files["test"])
        common["test_labels"] = given["label"] in columns_of(test, by_commas(test), quotes)
        if not common["test_labels"] and "dev" not in files:
            raise DescriptionError(
                f"{name}: test: expected a file with labels, or one for dev beside it, found "
                f"{files['test']} without a column {given['label']!r}"
            )
    if given["type"] == "classification":
        labels = tuple(given["labels"]) or classes(name, files, found)
        check_labels(name, labels)
        return Described(**common, labels=labels)
    low, high = bounds(given, *scale(Path(files["train"]), found))
    return Described(**common, low=low, high=high)


def in_folder(place: str) -> dict[str, str]:
    """The files of a folder by split; a file stands for itself.

    Known are `train.csv` beside `dev.csv` or `validation.csv` and `test.csv`, any ending alike,
    shards `data/train-*.parquet`, and what the library datasets saves.
    """
    folder = Path(place)
    if not folder.is_dir() or (folder / "state.json").exists():  # one split that datasets saved
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
    """(line, label) of each row that has one."""
    for line, row in rows_by_name(file, [column], by_commas(file), quotes):
        if label := row[column].strip():
            yield line, label


def by_commas(file: Path) -> bool:
    """Whether fields may be separated by commas; tabs in the header tell otherwise."""
    return file.suffix.lower() != ".tsv"


def check_labels(name: str, labels: Sequence[str]) -> None:
    """DataError for classes that cannot be told apart, or would break the prediction file."""
    for label in labels:
        if not label or " , " in label or any(harmful(letter) for letter in label):
            raise DataError(
                f"{name}: expected labels without ' , ' and line breaks, not blank, found {label!r}"
            )
        if labels.count(label) > 1:
            raise DataError(f"{name}: expected labels that differ, found {label!r} twice")


def classes(
    name: str, files: Mapping[str, str], found: Iterator[tuple[int, str]]
) -> tuple[str, ...]:
    """The distinct labels: by number where all are numbers, else by name."""
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
    """The least and the greatest label."""
    low, high = float("inf"), float("-inf")
    for line, label in found:
        value = to_number(label)
        if value is None:
            raise DataError(f"{file}, line {line}: expected a number, found {label!r}")
        low, high = min(low, value), max(high, value)
    if not low < high:
        raise DataError(f"{file}: expected similarities that differ, found none or one")
    return low, high


def bounds(given: Mapping[str, Any], low: float, high: float) -> tuple[float, float]:
    """The scale that is given; what is not, that of the file."""
    low = low if given.get("low") is None else given["low"]
    high = high if given.get("high") is None else given["high"]
    if not low < high:
        raise DescriptionError(f"expected low below high, found low={low:g} and high={high:g}")
    return low, high
