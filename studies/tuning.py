"""Settings chosen on dev: `reproduce --tune N` trains N points of each requested cell's grid.

Every method has the same number of points, drawn at random from its grid with a fixed seed, or its
whole grid if that is smaller. While the best point has the lowest or the highest learning rate, it
is tried with a third of that rate, or with three times it, `BEYOND` times at most. The dev figures
are stored in `tuning/CELL.json` below the results; a study's cells take the best point of that
file. Test figures are not stored there.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from common.errors import UserError
from common.files import write_json
from multitask.config_tasks import without_paths
from multitask.settings.config import RunConfig
from multitask.settings.from_flags import changed_by_flags
from reports.cells import check_config, read_cell
from reports.tables import Table, shown
from studies.data_records import record_examples
from studies.results import Cell, Results
from studies.runner import run_cells

FOLDER = "tuning"
SEEDS = 3  # per point
FACTOR = 3  # between neighbouring learning rates
RATES = (1 / FACTOR, 1.0, FACTOR)  # times the study's learning rate
BEYOND = 3  # most points with a rate beyond those of the grid

Settings = Mapping[str, Any]
Tuned = Mapping[str, Settings]  # by cell


@dataclass(frozen=True)
class Search:
    """A cell whose settings are chosen, and its grid: the values of each setting.

    `dev` are the keys of the dev figure in the figures of a run; larger is better.
    """

    cell: Cell
    grid: Mapping[str, Sequence[Any]]
    dev: tuple[str, ...]

    def points(self, count: int) -> list[dict[str, Any]]:
        """Return `count` points of the grid, drawn with a fixed seed; all if there are fewer."""
        every = [dict(zip(self.grid, point, strict=True)) for point in product(*self.grid.values())]
        random.Random(0).shuffle(every)
        return every[:count]

    def trial(self, point: Settings, seeds: int) -> Cell:
        """Return the cell of a point with the first `seeds` seeds."""
        config = changed_by_flags(self.cell.config, **changes_of(point))
        name = config.digest()
        cell = replace(self.cell, config=config, seeds=self.cell.seeds[:seeds])
        return replace(cell, name=f"{self.cell.name}-{name}")


def searches_of(searches: Iterable[Search], kind: str = "", method: str = "") -> list[Search]:
    """Return the searches of cells with names such as `KIND-TASK-METHOD`, of any kind or method."""
    beginning, end = (f"{kind}-" if kind else ""), (f"-{method}" if method else "")
    return [
        one
        for one in searches
        if one.cell.name.startswith(beginning) and one.cell.name.endswith(end)
    ]


def changes_of(settings: Settings) -> dict[str, Any]:
    """Return settings as changes of a configuration: `lr` is that of encoder and heads."""
    return {**settings, **({"head_lr": settings["lr"]} if "lr" in settings else {})}


def rates(config: RunConfig) -> tuple[float, ...]:
    """Return the learning rates of a grid: the study's rate, a third of it and three times it."""
    return tuple(rounded(config.optimizer.lr * factor) for factor in RATES)


def rounded(rate: float) -> float:
    """Return a learning rate with three digits."""
    return float(f"{rate:.3g}")


def tune(searches: Sequence[Search], count: int, results: Path, runs: Path) -> list[str]:
    """Train `count` points of each search and those beyond its grid; return the errors.

    Stored points are not repeated. The dev figures, and the examples that each seed draws, are
    stored in `results`.
    """
    failed = []
    runs.mkdir(parents=True, exist_ok=True)
    (results / FOLDER).mkdir(parents=True, exist_ok=True)
    trained = Results(runs / FOLDER)  # with figures of test, which select nothing
    for search in searches:
        for seed in search.cell.seeds[:SEEDS]:
            record_examples(changed_by_flags(search.cell.config, seed=seed), results, runs)
        left = points_left(search, count, results)
        what = f"{len(left)} points of {', '.join(search.grid)} are left"
        print(f"\n{search.cell.name}: {what}", flush=True)
        errors = [line for point in left for line in try_point(search, point, trained, results)]
        tried: Settings | None = None
        while not errors and (beyond := point_beyond(search, results)) not in (None, tried):
            what = f"one more point, with the rate {beyond['lr']:g}"
            print(f"\n{search.cell.name}: {what}", flush=True)
            errors = try_point(search, beyond, trained, results)
            tried = beyond
        failed += errors
    return failed


def try_point(search: Search, point: Settings, trained: Results, results: Path) -> list[str]:
    """Train a point with each seed and store its dev figures; return the errors of failed runs."""
    cell = search.trial(point, SEEDS)
    failed = run_cells([cell], trained, trained.folder.parent, record_drawn=False)
    dev = trained.values(cell, *search.dev)
    if len(dev) == len(cell.seeds):
        figures = {str(seed): figure for seed, figure in dev.items()}
        date = min(trained.values(cell, "environment", "date").values())
        beyond = any(point[key] not in as_json(values) for key, values in search.grid.items())
        new = {"settings": point, "beyond": beyond, "dev": figures, "date": date}
        points = stored_points(search, results)
        if point not in [one["settings"] for one in points]:  # stored by another process
            content = {"config": without_paths(search.cell.config), "points": [*points, new]}
            write_json(file_of(search, results), content)
    return failed


def points_tried(search: Search, results: Path) -> int:
    """Return the number of stored points of a search, without those beyond its grid."""
    return sum(not one["beyond"] for one in points_in(search, results))


def rates_tried(search: Search, results: Path) -> set[float]:
    """Return the learning rates among the stored points of a search."""
    points = points_in(search, results)
    return {one["settings"]["lr"] for one in points if "lr" in one["settings"]}


def points_in(search: Search, results: Path) -> list[dict[str, Any]]:
    """Return the stored points of a search, whatever configuration they belong to."""
    file = file_of(search, results)
    return points_of(file, read_cell(file)) if file.exists() else []


def points_left(search: Search, count: int, results: Path) -> list[dict[str, Any]]:
    """Return those of the first `count` points that are not stored."""
    known = [point["settings"] for point in stored_points(search, results)]
    return [point for point in as_json(search.points(count)) if point not in known]


def point_beyond(search: Search, results: Path) -> Settings | None:
    """Return the best point with the next rate beyond, if it has the lowest or the highest one."""
    points = stored_points(search, results)
    further = sum(one["beyond"] for one in points)
    if not points or further == BEYOND or "lr" not in search.grid:
        return None
    best = best_point(points)["settings"]
    every = {*search.grid["lr"], *(one["settings"]["lr"] for one in points)}
    factor = {max(every): FACTOR, min(every): 1 / FACTOR}.get(best["lr"])
    return None if factor is None else {**best, "lr": rounded(best["lr"] * factor)}


def as_json(value: Any) -> Any:
    """Return a value as it is after storing: lists in place of tuples."""
    return json.loads(json.dumps(value))


def file_of(search: Search, results: Path) -> Path:
    return results / FOLDER / f"{search.cell.name}.json"


def stored_points(search: Search, results: Path) -> list[dict[str, Any]]:
    """Return the stored points of a search; raise UserError for another configuration."""
    file = file_of(search, results)
    if not file.exists():
        return []
    content = read_cell(file)
    check_config(file, search.cell.config, content.get("config") or {}, ignored=("seed",))
    return points_of(file, content)


def points_of(file: Path, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the points in a file; raise UserError for other content."""
    try:
        return [
            {
                "settings": dict(one["settings"]),
                "beyond": bool(one.get("beyond", False)),
                "dev": {str(int(seed)): figure for seed, figure in one["dev"].items()},
                "date": str(one.get("date", "")),
            }
            for one in content["points"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{file}: expected points with settings and dev figures") from error


def best_point(points: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the point with the highest mean dev figure, the first of equal ones."""
    return max(points, key=lambda point: fmean(point["dev"].values()))


def tuned_settings(searches: Sequence[Search], results: Path) -> dict[str, Settings]:
    """Return the best settings of each tuned cell."""
    return {
        search.cell.name: {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in best_point(points)["settings"].items()
        }
        for search in searches
        if (points := stored_points(search, results))
    }


def tuning_table(searches: Sequence[Search], results: Path) -> Table:
    """Return the chosen settings of each tuned cell, and its number of points and seeds.

    Points beyond the grid are counted after a plus sign.
    """
    rows = []
    for search in searches:
        if not (points := stored_points(search, results)):
            continue
        best = best_point(points)
        chosen = ", ".join(f"{key} {shown(value)}" for key, value in best["settings"].items())
        mean = fmean(best["dev"].values())
        further = sum(one["beyond"] for one in points)
        tried = f"{len(points) - further}" + (f" + {further}" if further else "")
        rows.append([search.cell.name, chosen, f"{mean:.4f}", tried, str(len(best["dev"]))])
    return ["cell", "chosen on dev", "dev", "points", "seeds"], rows
