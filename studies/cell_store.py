"""The cells of a study that are kept: read, checked, left out where a mended fault made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from common.json_files import read_json
from common.settings import accepts
from multitask.config import RunConfig
from multitask.run_folder import Figures, RunFolder
from reports.cells import as_kept, check_config, read_cell, run_of_cell
from studies.faults import Fault, fault_of

Content = Mapping[str, Any]  # of a cell's file


@dataclass(frozen=True)
class Cell:
    """One run, and another that has to be finished `before` because it starts from it."""

    name: str
    config: RunConfig
    before: Cell | None = None

    def beginnings(self) -> Iterator[RunConfig]:
        """The configurations of the runs that it starts from."""
        if self.before is not None:
            yield self.before.config
            yield from self.before.beginnings()


def kept_content(one: Cell, results: Path) -> Content | None:
    """What is kept of a cell, stale or not; None without a file.

    UserError if it was edited, or made with another configuration, unless it is stale: a fault may
    have been mended by another setting.
    """
    file = results / f"{one.name}.json"
    if not file.exists():
        return None
    if not isinstance(read_json(file, UserError).get("config"), dict):
        raise UserError(f"{file}: expected a cell with a config, found none")
    content = read_cell(file)
    if stale(one, content) is None:
        # A run writes down which kernel it chose.
        check_config(file, one.config, content["config"], ignored=("linear",))
    return content


def stale(one: Cell, content: Content) -> Fault | None:
    """The mended fault with which a kept cell was made, or a run that it starts from."""
    made = str(content.get("environment", {}).get("date", ""))
    configs = [content["config"], *(config.to_json() for config in one.beginnings())]
    return next((fault for config in configs if (fault := fault_of(config, made))), None)


def kept_cell(one: Cell, results: Path) -> bool:
    """Whether the cell is there and no fault touches it; UserError as `kept_content`."""
    content = kept_content(one, results)
    return content is not None and stale(one, content) is None


def faults_of(cells: Sequence[Cell], results: Path) -> list[Fault]:
    """The fault of each kept cell that is stale."""
    contents = [(one, kept_content(one, results)) for one in cells]
    found = (stale(one, content) for one, content in contents if content is not None)
    return [fault for fault in found if fault is not None]


def read_cells(cells: Sequence[Cell], results: Path) -> dict[str, Content]:
    """What is kept of the finished ones that no fault touches, by name, in their order."""
    found: dict[str, Content] = {}
    for one in cells:
        content = kept_content(one, results)
        if content is None or stale(one, content):
            continue
        if not accepts(Figures, content.get("dev")):
            file = results / f"{one.name}.json"
            raise UserError(f"{file}: dev: expected a run's metrics, found none")
        found[one.name] = content
    return found


def finished_folder(one: Cell, runs: Path) -> Path | None:
    """The folder of a cell's finished run, where it is there and no fault touches it."""
    folder = runs / one.name
    if not run_of_cell(folder, one.config) or stale_run(one, folder):
        return None
    return folder


def stale_run(one: Cell, folder: Path) -> bool:
    """Whether a folder holds a finished run of a cell that a fault touches.

    A fault may have been mended by another setting: the run's own configuration decides.
    """
    run = RunFolder(folder)
    config, metrics = run.stored(), run.read_metrics()
    if config is None or metrics is None:
        return False
    return stale(one, {"config": as_kept(config)} | metrics) is not None


def made_of(merged: Content, cells: Mapping[str, Content]) -> bool:
    """Whether the scores of the members of an ensemble or a soup are those of the cells."""
    return all(
        name in cells
        and all(np.isclose(score, cells[name]["dev"][task][key]) for key, score in scores.items())
        for task, part in merged["members"].items()
        for name, scores in part["dev"].items()
    )
