"""Which cells of a study are run: those asked for whose data is there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import count as numbers
from itertools import islice
from pathlib import Path

from common.errors import UserError
from multitask.assembly import plain_tasks
from studies.faults import left_out
from studies.seeds import SeedCell, faults_of_seeds, kept, run_seed_cells
from studies.study_request import StudyRequest
from tasks import data_folder


def chosen_cells(
    every: Sequence[SeedCell], wanted: Callable[[SeedCell], bool], asked: StudyRequest
) -> list[SeedCell]:
    """The cells to run, with as many seeds as asked for; absent tasks are told.

    Raises UserError, before hours of work, where a cell is kept with another configuration.
    """
    for one in every:
        kept(one, asked.results)
    found = [one for one in every if wanted(one)]
    if asked.seeds is not None:
        found = [replace(one, seeds=chosen_seeds(one, asked.seeds)) for one in found]
    return there(found)


def run_chosen(
    every: Sequence[SeedCell], wanted: Callable[[SeedCell], bool], asked: StudyRequest
) -> tuple[list[SeedCell], list[str]]:
    """Run the cells asked for, none with `kept_only`: which they are, and what went wrong."""
    if asked.kept_only:
        return [], []
    chosen = chosen_cells(every, wanted, asked)
    return chosen, run_seed_cells(chosen, asked.results, asked.runs)


def chosen_seeds(one: SeedCell, count: int) -> tuple[int, ...]:
    """Sweeps have no more than their own: their points are shown over the same seeds."""
    return one.seeds[:count] if one.name.startswith("sweep") else first_seeds(one.seeds, count)


def first_seeds(own: Sequence[int], count: int) -> tuple[int, ...]:
    """The first of a cell's own seeds; others where it has fewer, such as for a paper's ten."""
    others = (seed for seed in numbers(1) if seed not in own)
    return (*own[:count], *islice(others, max(0, count - len(own))))


def all_chosen(chosen: Sequence[SeedCell], cells: Sequence[SeedCell]) -> bool:
    """Whether all of these cells are run, such as those that a figure shows."""
    return {one.name for one in chosen} >= {one.name for one in cells}


def there(cells: Sequence[SeedCell]) -> list[SeedCell]:
    """Those whose data is there; absent tasks are told. UserError where none is."""
    absent = absent_tasks(cells)
    for name, file in absent.items():
        print(f"{name} is left out, for there is no {file}", flush=True)
    found = without(absent, cells)
    if not found:
        raise UserError(f"{cells[0].config.data}: expected data of a task asked for, found none")
    return found


def without(absent: Collection[str], cells: Sequence[SeedCell]) -> list[SeedCell]:
    """The cells of none of these tasks."""
    return [one for one in cells if not set(absent) & set(one.config.tasks)]


def how_far(cells: Sequence[SeedCell], results: Path, absent: Collection[str] = ()) -> str:
    """How many cells have all their seeds, of those whose data is there; what is not there.

    Also how many runs are left out, and why.
    """
    cells = without(absent, cells)
    done = sum(len(kept(one, results)) >= len(one.seeds) for one in cells)
    parts = [f"{done} of {len(cells)} cells are finished."]
    parts += [f"Without data here: {', '.join(absent)}."] if absent else []
    parts += [left_out(faults_of_seeds(cells, results))]
    return " ".join(filter(None, parts))


def absent_tasks(cells: Sequence[SeedCell]) -> dict[str, Path]:
    """Tasks of which a file that their protocol reads is not there, and the first such file."""
    absent: dict[str, Path] = {}
    for config in {one.config.tasks: one.config for one in cells}.values():
        folder = data_folder(config.data)
        for name, task in plain_tasks(config).items():
            for split in task.source.splits:
                file = Path(task.source.where(folder, split))
                if not file.exists():
                    absent.setdefault(name, file)
    return absent
