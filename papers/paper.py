"""A paper as data: its rows, each the configuration of some runs, and the settings of a run."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from common.errors import SettingsError
from common.files import digest
from common.settings import methods
from multitask.combiners import Combiner
from papers.store import OVERALL, Store

Settings = dict[str, Any]  # of `RunConfig`, nested; `tasks` are options by task
Extras = Callable[[str, Path, dict[str, Any]], dict[tuple[str, str, str], float]]
OWN = "own-"  # before the name of a user's method
AT = "@"  # between a row and a point of its grid: `M4@1e-4`


class Cell(NamedTuple):
    """One run: a row, or a point of its grid, with a seed."""

    name: str
    seed: int

    @property
    def row(self) -> str:
        return self.name.partition(AT)[0]

    @property
    def point(self) -> str:
        return self.name.partition(AT)[2]

    @property
    def folder(self) -> str:
        return f"{self.name}-seed{self.seed}"


@dataclass(frozen=True)
class Row:
    """A row of a table: the settings of its runs, without data, device and seed.

    `grid` has settings by the name of a point: the point that is best on dev with the paper's
    tuning seed is added to `settings`. A row may be tuned `like` another one: it has the point that
    was chosen there, before its own grid, if it has one, is searched. A row begins with the weights
    of the run of the row `start` with its seed. With `probe`, its figures are those of a logistic
    regression on its embeddings. With `constant`, nothing is trained: every example gets the most
    frequent class, or the same similarity. With `members`, rows by task, it has no settings: it is
    the ensemble of their runs of its seed. `code` is the hash of a user's file that it needs.
    """

    settings: Settings
    seeds: tuple[int, ...]
    grid: Mapping[str, Settings] = field(default_factory=dict)
    like: str | None = None
    start: str | None = None
    probe: bool = False
    constant: bool = False
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper's rows by name, in the order in which they are run.

    `metrics` are stored where a run has them. `extras` returns further figures of a finished run,
    by task, split and metric, from the name of the row, the run's folder and its metrics.
    `of_method` makes a row `own-NAME` of a user's combiner; a paper without it has no such rows.
    """

    name: str
    rows: Mapping[str, Row]
    metrics: tuple[str, ...]
    tuning_seed: int = 0
    extras: Extras = lambda row, folder, metrics: {}
    of_method: Callable[[str], Row] | None = None

    def changed(self, changes: Settings) -> Paper:
        """Return the paper with other values of settings, in the rows that name these settings.

        The rate `lr` replaces the search in the grid of a row.
        """
        rows, lr = {}, changes.get("lr")
        for name, row in self.rows.items():
            own = {key: one for key, one in changes.items() if key in row.settings}
            settings = merged(row.settings, own)
            if lr is not None and (row.grid or row.like or "lr" in settings.get("optimizer", {})):
                settings = merged(settings, *rates(lr).values())
                grid = {name: one for name, one in row.grid.items() if "optimizer" not in one}
                row = replace(row, grid=grid)  # tuned like others, for what is left of their grids
            rows[name] = replace(row, settings=settings)
        return replace(self, rows=rows)

    def with_methods(self, files: Sequence[str]) -> Paper:
        """Return the paper with only rows `own-NAME`, of the combiners in a user's loaded files."""
        if self.of_method is None:
            raise SettingsError(f"use: the table {self.name} has no rows for combiners of yours")
        own, rows = {Path(file).resolve() for file in files}, dict[str, Row]()
        for name, one in methods(Combiner).items():
            if (file := Path(inspect.getfile(one))) in own:
                rows[f"{OWN}{name}"] = replace(self.of_method(name), code=digest(file))
        if not rows:
            raise SettingsError(f"use: no class of a Combiner with a name in {', '.join(files)}")
        return replace(self, rows=rows)

    def tuned_rows(self, name: str) -> list[str]:
        """Return the rows whose grids decide about a row, in the order of their choices."""
        row = self.rows[name]
        return (self.tuned_rows(row.like) if row.like else []) + ([name] if row.grid else [])

    def own_points(self, name: str) -> list[Cell]:
        """Return the runs of a row's own grid."""
        return [Cell(f"{name}{AT}{point}", self.tuning_seed) for point in self.rows[name].grid]

    def points(self, name: str) -> list[Cell]:
        """Return the tuning runs that decide about a row; none for a row without a grid."""
        return [point for one in self.tuned_rows(name) for point in self.own_points(one)]

    def needs(self, cell: Cell) -> Iterator[Cell]:
        """Yield the runs that must be finished before a run."""
        row = self.rows[cell.row]
        if row.start is not None:
            yield Cell(row.start, cell.seed)
        yield from (one for one in self.points(cell.row) if one.row != cell.row or not cell.point)
        for member in dict.fromkeys(one for several in row.members.values() for one in several):
            yield Cell(member, cell.seed)

    def chosen(self, name: str, store: Store) -> str | None:
        """Return the point of a row's grid that is best on dev; None if one has no figure yet."""
        found = {one.point: self.score_on_dev(one, store) for one in self.own_points(name)}
        scores = {point: score for point, score in found.items() if score is not None}
        complete = scores and len(scores) == len(found)
        return max(scores, key=lambda point: scores[point]) if complete else None

    def score_on_dev(self, cell: Cell, store: Store) -> float | None:
        """Return the overall score of a run on dev, or else the mean of its tasks' main metrics."""
        tasks = self.rows[cell.row].settings.get("tasks", ())
        whole = store.values(cell.name, OVERALL[0], "dev", OVERALL[1])
        if cell.seed in whole:
            return whole[cell.seed]
        found = []
        for task in tasks:
            several = (store.values(cell.name, task, "dev", metric) for metric in self.metrics)
            found += [one[cell.seed] for one in several if cell.seed in one][:1]
        return fmean(found) if found else None

    def settings(self, cell: Cell, store: Store) -> dict[str, Any]:
        """Return the settings of a run, with the chosen point of the grid.

        Raise SettingsError if the point is not chosen yet.
        """
        found = merged(self.rows[cell.row].settings)
        for name in self.tuned_rows(cell.row):
            point = cell.point if name == cell.row and cell.point else self.chosen(name, store)
            if point is None:
                raise SettingsError(f"{cell.name}: its settings are not chosen yet; run its tuning")
            found = merged(found, self.rows[name].grid[point])
        return found

    def record(self, cell: Cell, store: Store) -> dict[str, Any]:
        """Return what is stored about a row, as JSON has it: its settings and what it begins with.

        Raise SettingsError if a stored run of the row has other settings.
        """
        row = self.rows[cell.row]
        found = self.settings(cell, store)
        more = {key: getattr(row, key) for key in ("start", "members", "code", "probe", "constant")}
        found |= {key: value for key, value in more.items() if value}
        found = json.loads(json.dumps(found))
        known = store.settings.get(cell.name, found)
        if known != found:
            key = next(key for key in {**known, **found} if known.get(key) != found.get(key))
            line = f"{store.json}: {cell.name} has another {key}; choose another --results"
            raise SettingsError(line)
        return found


def merged(*several: Settings) -> dict[str, Any]:
    """Return settings in which later ones replace earlier ones, those of a method one by one."""
    found: dict[str, Any] = {}
    for one in several:
        for key, value in one.items():
            old = found.get(key)
            if isinstance(old, Mapping) and isinstance(value, Mapping) and key != "tasks":
                value = merged(dict(old), dict(value))
            found[key] = value
    return found


def rates(*several: float) -> dict[str, Settings]:
    """Return a grid of learning rates, of encoder and heads alike, by names such as `3e-5`."""
    found = {}
    for one in several:
        number, exponent = f"{one:e}".split("e")
        name = f"{float(number):g}e{int(exponent)}"
        found[name] = {"optimizer": {"lr": one, "head_lr": one}}
    return found


def find_paper(name: str) -> Paper:
    """Import the file of a paper and return the paper."""
    found: Paper = import_module(f"{__package__}.{name}").PAPER
    return found
