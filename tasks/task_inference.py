"""Completion of a user's task description from its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.text import first_names
from tasks.described import FILES
from tasks.own_types import TYPES
from tasks.own_types.base import DescriptionError, TaskDescription
from tasks.tables import has_columns, rows_by_name
from tasks.text_files import DataError

SPLITS = {"train": ("train",), "dev": ("dev", "validation", "valid"), "test": ("test",)}
ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")


def complete_description(name: str, description: Mapping[str, Any]) -> TaskDescription:
    """Return the complete description of a task; read missing labels from the training file.

    Raises DescriptionError, or DataError with the file and line of invalid data.
    """
    files = {key: description[key] for key in FILES if description.get(key)}
    if len(files) == 1:
        files = in_folder(files["train"])
    for key, file in files.items():
        if not Path(file).exists():
            raise DataError(f"{file}: expected the file {key} of {name}, found none")
    labels, own = description["label"], TYPES[description["type"]]
    common: dict[str, Any] = {
        "name": name,
        "type": description["type"],
        "texts": tuple(description["text"]),
        "label": labels[0] if len(labels) == 1 else None,
        "id": description.get("id"),
        "joint": description.get("pair") == "joint",
        "quotes": description.get("quotes", "yes") in ("yes", True),
        "train": files["train"],
        "dev": files.get("dev"),
        "test": files.get("test"),
        "group": description.get("group"),
    }
    if common["group"] is not None and common["dev"] is not None:
        raise DescriptionError(
            f"{name}: group: expected a single file that is split, found also a file for dev, "
            f"{common['dev']}"
        )
    quotes = common["quotes"]
    found = labels_of(Path(files["train"]), labels, quotes, own.lists(description))
    if "test" in files:
        test = Path(files["test"])
        common["test_labels"] = has_columns(test, labels, quotes)
        if not common["test_labels"] and "dev" not in files:
            raise DescriptionError(
                f"{name}: test: expected a file with labels, or also a file for dev, found "
                f"{files['test']} without a column {first_names(list(map(repr, labels)))}"
            )
    of_type = own.complete(name, description, files["train"], found)
    return TaskDescription(**common, **of_type)


def in_folder(place: str) -> dict[str, str]:
    """Return the files of a folder by split; a file is returned as train.

    A folder has `train.csv`, and `dev.csv` or `validation.csv` and `test.csv`, with any ending of
    `ENDINGS`.
    """
    folder = Path(place)
    if not folder.is_dir():
        return {"train": place}
    found: dict[str, str] = {}
    for split, names in SPLITS.items():
        for name in names:
            for ending in ENDINGS:
                if (folder / f"{name}{ending}").exists():
                    found.setdefault(split, str(folder / f"{name}{ending}"))
    if "train" not in found:
        raise DataError(f"{folder}: expected a file train.csv or the like, found none")
    return found


def labels_of(
    file: Path, columns: Sequence[str], quotes: bool, lists: Mapping[str, str]
) -> Iterator[tuple[int, str]]:
    """Yield (line, label) of each row and column with a label."""
    for line, row in rows_by_name(file, columns, quoted_tabs=quotes, lists=lists):
        for name in columns:
            if label := row[name].strip():
                yield line, label


def description_lines(described: TaskDescription) -> Iterator[str]:
    """Yield what a task predicts from which columns, and a notice about doubtful labels."""
    yield from TYPES[described.type].lines(described)
