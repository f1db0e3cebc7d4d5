"""What a file is, by its name and header: predictions of a course's task, of another task, or else.

A prediction file has a header with `id` and a name that begins with `Predicted`. Without such a
header its name still shows that it should be one: `sst-dev-output.csv`, `finetune-sst-dev-out.csv`,
`quora-paraphrase-test-output.csv`, `val_sst.tsv`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.atomic_files import check_regular
from common.text import first_names
from multitask.storage.run_folder import run_of_predictions
from multitask.storage.stored_config import stored_run_errors
from tasks.registry import TASK_NAMES
from tasks.task_description import RESERVED
from tasks.text_files import DataError

COURSES = ("sst", "qqp", "sts", "cfimdb", "etpc")  # the tasks of the courses
ENDINGS = (".csv", ".tsv", ".txt")
TABLES = ENDINGS[:2]
SHOWN = 10  # files that are not read, by name
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
OUTPUT_WORDS = {"out", "output", "pred", "preds", "prediction", "predictions"}
DATA_COLUMN = re.compile(f"sentence.*|is_duplicate|{'|'.join(COLUMNS)}")
OWN_NAME = re.compile(r"(.+)-(dev|test)-output\.csv")  # of a file that this program wrote


@dataclass(frozen=True)
class Header:
    """A file's task, None if it is not one of the courses, and split, None if unknown.

    There are `skipped` fields in a row before the id. The prediction is all that follows or, if the
    header has other `columns`, the field number `place` of so many, from 0. `fault` is what stands
    in place of the header of predictions, `other` the task that the courses do not have.
    """

    file: Path
    task: str | None = None
    split: str | None = None
    skipped: int = 0
    place: int | None = None
    columns: int = 2
    fault: str = ""
    other: str = ""


def read_headers(folder: Path) -> list[Header]:
    """Read the files in a folder, sorted by path; `folder` may also be a file."""
    files = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    some = [one for one in files if one.suffix.lower() in ENDINGS and one.is_file()]
    return [read_header(one, folder) for one in some]


def read_header(file: Path, folder: Path) -> Header:
    """Read the first line of a file; the words of its path inside `folder` count, too."""
    check_regular(file, DataError)
    with file.open("rb") as content:
        line = content.readline(4096)
    text = line.decode("utf-8", "replace").strip("\ufeff\r\n")
    marks = r"[\t,]+" if "\t" in text and "," in text else r"[\t,]"
    names = [name.strip().strip('"').lower() for name in re.split(marks, text)]
    column = next((n for n in names if n.startswith("predicted")), None)
    inside = file.relative_to(folder) if file != folder else Path(file.name)
    words = words_of(str(inside))[::-1]
    split = next((SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS), None)
    readable = column is not None and "id" in names
    if other := other_task(file):
        return Header(file, other=other)
    if column is not None and readable:
        task = task_of(column.removeprefix("predicted").strip("_ "), words)
        if task is not None:
            skipped = names.index("id")
            place = None if names[skipped:] == ["id", column] else names.index(column)
            return Header(file, task, split, skipped, place, len(names))
    if task := task_by_name(file, words, names):
        return Header(
            file, task, split, fault=f"line 1 is {text[:60]!r}" if line else "the file is empty"
        )
    return Header(file, other="an own task" if readable else "")


def words_of(name: str) -> list[str]:
    return re.findall(r"[a-z]+", name.lower())


def task_of(column: str, words: Sequence[str]) -> str | None:
    """Return the task of a column and of the words of a path, the last word first."""
    task = COLUMNS.get(column)
    if task == "sst":  # both files on sentiment have the same column
        return "cfimdb" if "cfimdb" in words else "sst"
    if task is not None or column not in ("", "label", "value", "score"):
        return task
    return next((WORDS[word] for word in words if word in WORDS), None)


def task_by_name(file: Path, words: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the task of a file whose name is that of predictions, or None.

    The name says so, or has only the words of a task and a split and is not a file of the data.
    """
    own = set(words_of(file.stem))
    if not own & SPLIT_WORDS.keys():
        return None
    places: tuple[Container[str], ...] = (own,)
    if own & OUTPUT_WORDS:
        places = (own, words)
    elif any(map(DATA_COLUMN.fullmatch, names)) or not own <= {*WORDS, *SPLIT_WORDS}:
        return None
    return next((WORDS[one] for place in places for one in WORDS if one in place), None)


def other_task(file: Path) -> str:
    """Return which task the courses do not have a file of this program is of, or nothing."""
    named = OWN_NAME.fullmatch(file.name)
    name = named[1] if named else ""
    if name in TASK_NAMES and name not in COURSES:
        return f"the task {name}"
    if not name or name in RESERVED:
        return ""
    run = run_of_predictions(file)
    with stored_run_errors(run.path):
        stored = run.settings_if_any() or {}
        return "an own task" if name in stored.get("own_tasks", {}) else ""


def remarks_on_others(headers: Iterable[Header], folder: Path) -> list[str]:
    """Return lines that name the files of other tasks and the tables that are not read."""
    headers = [one for one in headers if one.task is None]
    place = {one: inside_of(one.file, folder) for one in headers}
    lines = [
        f"{place[one]} is of {one.other}; --diagnose knows only the courses' tasks"
        for one in headers
        if one.other
    ]
    rest = [place[one] for one in headers if not one.other and one.file.suffix.lower() in TABLES]
    return [*lines, f"not read: {first_names(rest, SHOWN)}"] if rest else lines


def inside_of(file: Path, folder: Path) -> str:
    """Return the path of a file inside a folder, its name if the folder is the file itself."""
    return str(file.relative_to(folder)) if file != folder else file.name
