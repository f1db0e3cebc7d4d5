"""Prediction files of anybody's program, found in any folder and read with any usual layout."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.atomic_files import check_regular
from tasks.text_files import DataError

ENDINGS = (".csv", ".tsv", ".txt")
COLUMNS = {
    "sentiment": "sst",
    "is_paraphrase": "qqp",
    "similiary": "sts",  # CS224N's spelling
    "similarity": "sts",
    "paraphrase_types": "etpc",
}
# Words in file names, the most specific first.
WORDS = {
    "cfimdb": "cfimdb",
    "etpc": "etpc",
    "sst": "sst",
    "sentiment": "sst",
    "quora": "qqp",
    "qqp": "qqp",
    "para": "qqp",
    "paraphrase": "qqp",
    "sts": "sts",
    "similarity": "sts",
}
SPLIT_WORDS = {"dev": "dev", "val": "dev", "valid": "dev", "validation": "dev", "test": "test"}
AROUND = re.compile(r"tensor\(|,\s*(device|dtype|grad_fn)=.*")  # numbers printed by PyTorch
TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


@dataclass(frozen=True)
class Predictions:
    """A prediction file: n ids and values (n,), or (n, C) if each row has a list of C numbers.

    `split` is None if neither the file's name nor its folder has it. `broken` are the lines without
    an id and finite numbers, `repeated` the ids that occur again; neither has values.
    """

    file: Path
    task: str
    split: str | None
    ids: tuple[str, ...]
    values: np.ndarray
    broken: tuple[tuple[int, str], ...] = ()
    repeated: int = 0


def find_predictions(folder: Path) -> list[Predictions]:
    """Return the prediction files in a folder and the folders inside it, sorted by path.

    A file is one if the second name in its header begins with `Predicted`. `folder` may also be a
    file. Other files are left out.
    """
    files = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    some = [one for one in files if one.suffix.lower() in ENDINGS and one.is_file()]
    read = [read_predictions(one, folder) for one in some]
    return [one for one in read if one is not None]


def read_predictions(file: Path, folder: Path) -> Predictions | None:
    """Read a file; return None for a file of another kind."""
    check_regular(file, DataError)
    with file.open("rb") as content:
        header = content.readline(4096).decode("utf-8", "replace").strip("\ufeff\r\n")
        names = [name.strip().strip('"').lower() for name in re.split(r"[\t,]", header)]
        column = next((n for n in names if n.startswith("predicted")), None)
        if column is None or "id" not in names:
            return None
        inside = file.relative_to(folder) if file != folder else Path(file.name)
        words = re.findall(r"[a-z]+", str(inside).lower())[::-1]
        task = task_of(column.removeprefix("predicted").strip("_ "), words)
        if task is None:
            return None
        split = next((SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS), None)
        lines = content.read().decode("utf-8", "replace").splitlines()
    found: dict[str, tuple[float, ...]] = {}
    broken, repeated = [], 0
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        name, text = row_of(line, names.index("id") if len(names) > 2 else 0)
        values = numbers_of(text)
        if not name or values is None:
            broken.append((number, line))
        elif name in found:
            repeated += 1
        else:
            found[name] = values
    widths = [len(one) for one in found.values()]
    width = max(set(widths), key=widths.count, default=1)
    good = {name: one for name, one in found.items() if len(one) == width}
    odd = [(0, f"{name}: {len(one)} numbers") for name, one in found.items() if name not in good]
    table = np.array(list(good.values()), np.float64).reshape(len(good), width)
    table = table[:, 0] if width == 1 else table
    return Predictions(file, task, split, tuple(good), table, (*broken, *odd), repeated)


def task_of(column: str, words: Sequence[str]) -> str | None:
    """Return the task of a column and of the words of a path, the last word first."""
    task = COLUMNS.get(column)
    if task == "sst":  # both files on sentiment have the same column
        return "cfimdb" if "cfimdb" in words else "sst"
    if task is not None or column not in ("", "label", "value", "score"):
        return task
    return next((WORDS[word] for word in words if word in WORDS), None)


def row_of(line: str, skipped: int) -> tuple[str, str]:
    """Split a row at its first tab or, without one, its first comma, after an index column."""
    text = line.replace('"', "")
    mark = "\t" if "\t" in text else ","
    for _ in range(skipped):
        text = text.partition(mark)[2]
    name, _, value = text.partition(mark)
    return " ".join(name.lower().split()), value.strip()


def numbers_of(text: str) -> tuple[float, ...] | None:
    """Return the number in a field or, of `[0, 1]` and `tensor([0.5])`, the numbers.

    Return None for other fields, and for numbers that are not finite.
    """
    if text.lower() in TRUTH:
        return (TRUTH[text.lower()],)
    inside = AROUND.sub("", text).strip("[]() ")
    try:
        numbers = tuple(float(one) for one in re.split(r"[\s,]+", inside))
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None
