"""The stored figures of a paper: one CSV file, and one JSON file with the settings of each row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from common.errors import UserError
from common.files import atomic_write_text, read_json_if_any, write_json

OVERALL = "all", "overall"  # task and metric of the score over the tasks of CS224N


class Figure(NamedTuple):
    """One line of the CSV file; `task` is `all` for figures of a whole run."""

    row: str
    task: str
    seed: int
    split: str
    metric: str
    value: float
    commit: str
    machine: str
    date: str

    @property
    def place(self) -> tuple[str, int, str, str, str]:
        return self.row, self.seed, self.task, self.split, self.metric


class Store:
    """The figures and settings in `FOLDER/NAME.csv` and `.json`, which may not exist yet."""

    def __init__(self, folder: Path, name: str) -> None:
        self.csv, self.json = folder / f"{name}.csv", folder / f"{name}.json"
        self.reload()

    def reload(self) -> None:
        """Read the files again, which another process may have changed."""
        self.figures = read_figures(self.csv)
        content = read_json_if_any(self.json, UserError)
        self.command: str = content.get("command", "")
        self.settings: dict[str, Any] = content.get("rows", {})
        self.runs = {(one.row, one.seed) for one in self.figures}
        self._values: dict[tuple[str, str, str, str], dict[int, float]] = {}
        for one in self.figures:
            key = one.row, one.task, one.split, one.metric
            self._values.setdefault(key, {})[one.seed] = one.value

    def values(self, row: str, task: str, split: str, metric: str) -> Mapping[int, float]:
        """Return a figure of a row by seed."""
        return self._values.get((row, task, split, metric), {})

    def add(
        self, row: str, figures: Iterable[Figure], settings: Mapping[str, Any], command: str
    ) -> None:
        """Store the figures of a run, the settings of its row, and the command of the page."""
        new = {one.place: one for one in figures}
        self.csv.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.csv.with_name(f".{self.csv.name}.lock")):
            self.reload()
            every = {one.place: one for one in self.figures} | new
            write_figures(self.csv, every.values())
            rows = dict(sorted({**self.settings, row: settings}.items()))
            write_json(self.json, {"command": command, "rows": rows})
        self.reload()


def read_figures(file: Path) -> list[Figure]:
    """Read a file of figures; none if it does not exist."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    try:
        if tuple(rows[0]) != Figure._fields:
            raise ValueError
        return [
            Figure(row, task, int(seed), split, metric, float(value), *rest)
            for row, task, seed, split, metric, value, *rest in rows[1:]
        ]
    except (ValueError, TypeError, IndexError) as error:
        raise UserError(f"{file}: expected figures {','.join(Figure._fields)}") from error


def write_figures(file: Path, figures: Iterable[Figure]) -> None:
    """Write figures, sorted by row, seed, task, split and metric."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(Figure._fields)
    for one in sorted(figures, key=lambda one: one.place):
        value = f"{one.value:.6f}".rstrip("0").rstrip(".")
        table.writerow(value if name == "value" else cell for name, cell in one._asdict().items())
    atomic_write_text(file, text.getvalue())
