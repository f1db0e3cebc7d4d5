"""Leaderboard files: exact checks against the data, scores and packing."""

import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from common.errors import UserError
from common.files import atomic_path
from reports.tables import text_table
from tasks import CS224N, TASKS, build_task
from tasks.base import Task
from tasks.metrics import overall
from tasks.predictions import read_scores, scores_name
from tasks.readers import to_number

SHOWN = 5  # problems per file that are reported one by one
SPLITS = ("dev", "test")


@dataclass(frozen=True)
class Checked:
    """A prediction file with its problems, or else its values (N,), and metrics if it has labels.

    `selected` examples selected the members of an ensemble.
    """

    file: Path
    rows: int
    problems: tuple[str, ...]
    values: np.ndarray | None = None
    task: str = ""
    split: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    selected: int = 0


def check_predictions(file: Path, task: Task, ids: Sequence[str]) -> Checked:
    """Check that a file has the exact header and one well-formed row for each of `ids`.

    Each problem is one line of text with the file and the line number.
    """
    if not file.is_file():
        return Checked(file, 0, (f"{file}: the file is missing",))
    header, *lines = file.read_bytes().split(b"\n")
    problems: list[str] = []
    assert task.output is not None
    expected = task.output.header.encode()
    if header != expected:
        problems.append(f"{file}, line 1: expected the header {expected!r}, found {header[:80]!r}")
    if not lines or lines.pop() != b"":
        problems.append(f"{file}: the last row needs a line break at its end")
    wanted, found = set(ids), dict[str, float]()
    for number, line in enumerate(lines, 2):
        try:
            name, text = split_row(line)
            if name in found:
                raise ValueError(f"the id {name} is there twice")
            if name not in wanted:
                raise ValueError(f"the id {name} is not in the data")
            found[name] = 0.0  # the id is present, even if its value is invalid
            found[name] = read_value(task, text)
        except ValueError as error:
            problems.append(f"{file}, line {number}: {error}")
    if missing := [one for one in ids if one not in found]:
        lack = f"missing ids: {len(missing):,} of {len(ids):,}, such as {missing[0]}"
        problems.append(f"{file}: {lack}")
    if (more := len(problems) - SHOWN) > 0:
        problems[SHOWN:] = [f"{file}: and {more} more"]
    values = None if problems else np.array([found[one] for one in ids])
    return Checked(file, len(lines), tuple(problems), values)


def read_value(task: Task, text: str) -> float:
    """Return the value of a row; raise ValueError for another one, also for 1 in place of 1.0."""
    assert task.output is not None
    classes = {task.output.show(number): number for number in range(task.kind.classes or 0)}
    value = classes.get(text) if classes else to_number(text)
    if value is None:
        raise ValueError(f"expected {', '.join(classes) or 'a number'}, found {text[:40]!r}")
    return value


def split_row(line: bytes) -> tuple[str, str]:
    """Split `ID , VALUE ` into id and value; raise ValueError for a malformed row."""
    text = line.decode("utf-8")
    name, comma, rest = text.partition(" , ")
    if not (comma and name and rest.endswith(" ")) or name != name.strip() or "\r" in text:
        raise ValueError(f"expected 'ID , VALUE ', found {text[:80]!r}")
    return name, rest[:-1]


def check_folder(
    folder: Path, gold: Path, wanted: Sequence[str], every: bool, own: Collection[str] = ()
) -> list[Checked]:
    """Check the prediction files in a folder against the ids and labels of the data.

    The files of the tasks `wanted` are required, or the existing ones are checked without any. A
    split without any file is skipped, or reported as missing with `every`. Data that cannot be read
    are a problem of the file, and so is a file of no built-in task and none of `own`.
    """
    every_task = [build_task(name).output for name in TASKS]
    stems = {*own, *(one.stem for one in every_task if one)}
    known = {f"{stem}-{split}-output.csv" for stem in stems for split in SPLITS}
    found = [
        Checked(file, 0, (f"{file}: no task has a file of this name",))
        for file in sorted(folder.glob("*-output.csv"))
        if file.name not in known
    ]
    for split in SPLITS:
        outputs = {name: build_task(name).output for name in CS224N}
        files = {name: folder / one.name(split) for name, one in outputs.items() if one}
        there = [name for name, file in files.items() if file.exists()]
        for name in (wanted or there) if there or every else ():
            found.append(check_file(files[name], name, split, gold))
    return found


def check_file(file: Path, name: str, split: str, gold: Path) -> Checked:
    task = build_task(name)
    scores, marks = file.parent / scores_name(name, split), None
    try:
        examples = task.read(gold, split)
        if scores.exists():
            marks = read_scores(scores, task.kind).selected_on
    except UserError as error:  # the other files are scored
        return Checked(file, 0, (f"{file}: {error}",), task=name, split=split)
    checked = check_predictions(file, task, examples.ids)
    metrics = {}
    if checked.values is not None and examples.targets is not None:
        number = np.float64 if task.kind.classes is None else np.int64
        values, targets = (one.astype(number) for one in (checked.values, examples.targets))
        metrics = task.kind.metrics(values, targets)
    count = 0 if marks is None else int(marks.sum())
    return replace(checked, task=name, split=split, metrics=metrics, selected=count)


def score_table(found: Sequence[Checked]) -> str:
    """Return a table by file and metric, with overall scores of splits with all three tasks."""
    rows = []
    for one in found:
        count, state = f"{one.rows:,}", "wrong" if one.problems else "valid"
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
            info = zipfile.ZipInfo(file.name)  # from 1980: the same files give the same bytes
            archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED)
