"""Leaderboard files: exact checks against the data, scores and packing."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.files import atomic_path
from reports.tables import text_table
from tasks.base import Task
from tasks.metrics import overall
from tasks.predictions import PredictionFile, read_scores_of, scores_name
from tasks.readers import Label

SHOWN = 5  # problems per file that are reported one by one


@dataclass(frozen=True)
class Checked:
    """Problems of a prediction file or, without any, its values (N,) in the order of the ids."""

    file: Path
    rows: int
    problems: tuple[str, ...]
    values: np.ndarray | None


def check_predictions(file: Path, output: PredictionFile, ids: Sequence[str]) -> Checked:
    """Check that a file has the exact header and one well-formed row for each of `ids`.

    Each problem is one line of text with the file and the line number.
    """
    if not file.is_file():
        return Checked(file, 0, (f"{file}: expected a prediction file, found none",), None)
    header, *lines = file.read_bytes().split(b"\n")
    problems: list[str] = []

    def add(text: str, line: int | None = None) -> None:
        problems.append(f"{file}{'' if line is None else f', line {line}'}: {text}")

    expected = output.header.encode()
    if header != expected:
        add(f"expected the header {expected!r}, found {header[:80]!r}", 1)
    if lines and lines[-1] == b"":
        lines.pop()
    else:
        add("expected a line break at the end of the last row, found none", len(lines) + 1)
    wanted, found = set(ids), dict[str, Label]()
    for number, line in enumerate(lines, 2):
        try:
            name, text = split_row(line)
            if name in found:
                raise ValueError(f"expected each id once, found {name} again")
            if name not in wanted:
                raise ValueError(f"expected an id of the data, found {name}")
            found[name] = 0.0  # the id is present, even if its value is invalid
            found[name] = read_value(output, text)
        except ValueError as error:
            add(str(error), number)
    missing = [one for one in ids if one not in found]
    if missing:
        add(f"expected {len(ids)} ids, lacks {len(missing)}, such as {missing[0]}")
    if (more := len(problems) - SHOWN) > 0:
        problems[SHOWN:] = [f"{file}: and {more} more"]
    values = None if problems else np.array([found[one] for one in ids])
    return Checked(file, len(lines), tuple(problems), values)


def read_value(output: PredictionFile, text: str) -> Label:
    """Return the value of a row; raise ValueError for another one, also for 1 in place of 1.0."""
    try:
        value = output.parse(text)
        if value is None or (isinstance(value, int) and output.show(value) != text):
            raise ValueError("expected a value as runs write it")
    except ValueError as error:
        raise ValueError(f"{error}, found {text[:40]!r}") from None
    return value


def split_row(line: bytes) -> tuple[str, str]:
    """Split `ID , VALUE ` into id and value; raise ValueError for a malformed row."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"expected UTF-8, found {line[:40]!r}") from None
    name, comma, rest = text.partition(" , ")
    if not (comma and name and rest.endswith(" ")) or name != name.strip() or "\r" in text:
        raise ValueError(f"expected 'ID , VALUE ', found {text[:80]!r}")
    return name, rest[:-1]


SPLITS = ("dev", "test")
EPOCH = (1980, 1, 1, 0, 0, 0)  # time stamp in a zip: the same files give the same bytes


@dataclass(frozen=True)
class FileScore:
    """A checked prediction file, with its metrics if it is valid and labels are known.

    `notes` are remarks for the reader of the metrics.
    """

    task: str
    split: str
    checked: Checked
    metrics: Mapping[str, float]
    notes: tuple[str, ...]


def check_folder(
    folder: Path,
    gold: Path,
    tasks: Mapping[str, Task],
    wanted: Sequence[str] | None = None,
    every_split: bool = False,
) -> list[FileScore]:
    """Check the prediction files in a folder; raise DataError if the gold data cannot be read.

    With `wanted`, the files of these tasks are required; otherwise the existing files are checked.
    A split without any file is skipped, or reported as missing with `every_split`.
    """
    found = []
    for split in SPLITS:
        files = {
            name: folder / task.output.name(split)
            for name, task in tasks.items()
            if task.output is not None
        }
        there = [name for name, file in files.items() if file.exists()]
        for name in (wanted or there) if there or every_split else ():
            found.append(check_file(files[name], tasks[name], split, gold))
    return found


def check_file(file: Path, task: Task, split: str, gold: Path) -> FileScore:
    """Check one file against the ids and labels of the data."""
    examples = task.read(gold, split)
    assert task.output is not None
    checked = check_predictions(file, task.output, examples.ids)
    metrics: Mapping[str, float] = {}
    if checked.values is not None:
        number = np.float64 if task.kind.classes is None else np.int64
        if examples.targets is not None:
            metrics = task.kind.metrics(
                checked.values.astype(number), examples.targets.astype(number)
            )
    notes = tuple(notes_of(file, checked, task, split, examples.blank_rows))
    return FileScore(task.name, split, checked, metrics, notes)


def notes_of(file: Path, checked: Checked, task: Task, split: str, blank: int) -> Iterator[str]:
    """Yield remarks on a file, which may be valid nevertheless."""
    if blank:
        yield f"{task.name} {split}: {blank} rows of the data have no label and are left out"
    scale = task.output.scale if task.output is not None else None
    if checked.values is not None and scale is not None:
        outside = int(((checked.values < scale[0]) | (checked.values > scale[1])).sum())
        if outside:
            span = scale[1] - scale[0]
            yield f"{file}: {outside} values are outside of the scale, whose range is {span:g}"
    scores = file.parent / scores_name(task.name, split)
    if scores.exists():
        selected = read_scores_of(scores, task.kind).selected_on
        if selected is not None and selected.any():
            yield (
                f"{file}: {int(selected.sum())} of these {len(selected)} examples selected the "
                "members of an ensemble; metrics.json has the figures of the others"
            )


def score_table(found: Sequence[FileScore]) -> str:
    """Return a table by file and metric, with overall scores of splits with all three tasks."""
    rows = []
    for one in found:
        count, state = f"{one.checked.rows:,}", "wrong" if one.checked.problems else "sound"
        figures = [(name, f"{value:.4f}") for name, value in one.metrics.items()]
        for name, value in figures or [("", "")]:
            rows.append([one.split, one.task, count, state, name, value])
    for split in SPLITS:
        metrics = {one.task: one.metrics for one in found if one.split == split and one.metrics}
        rows += [
            [split, "all", "", "", name, f"{value:.4f}"] for name, value in overall(metrics).items()
        ]
    return text_table(["split", "task", "rows", "file", "metric", "score"], rows)


def pack(files: Sequence[Path], target: Path) -> None:
    """Write the files, without their folders, into a reproducible zip archive."""
    with atomic_path(target) as new, zipfile.ZipFile(new, "x", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            info = zipfile.ZipInfo(file.name, EPOCH)
            archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED)
