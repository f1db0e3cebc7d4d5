"""Training of a study's cells.

Several workers may share the folders: each takes the runs on which no other works.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from common.files import file_lock
from multitask.control import RunControl
from multitask.loop.telemetry import read_steps
from multitask.run import complete
from multitask.settings.config import RunConfig
from studies.data_records import record_examples
from studies.results import Cell, Results

KEPT = (
    *("dev", "test", "best_epoch", "steps", "combiner_steps", "rays", "training_seconds"),
    "seconds",
)


def training(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a short run; return its figures and the mean weight of each objective."""
    metrics = complete(config, folder, RunControl(resume=True))
    found = {key: metrics[key] for key in KEPT if key in metrics}
    return found | {"mean_weights": mean_weights(folder), "environment": metrics["environment"]}


def long_training(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Train a run whose folder is kept; return the content of its metrics.json."""
    metrics = complete(config, folder, RunControl(resume=True))
    # A command, of a run that was made by hand, has paths.
    return {key: value for key, value in metrics.items() if key != "command"}


def mean_weights(folder: Path) -> dict[str, float]:
    """Return the mean weight of each objective over the steps of a run, from its telemetry."""
    weights: dict[str, list[float]] = {}
    for line in read_steps(folder / "telemetry.jsonl"):
        for name, weight in line["weights"].items():
            weights.setdefault(name, []).append(weight)
    return {name: round(float(np.mean(several)), 4) for name, several in weights.items()}


def run_cells(
    cells: Sequence[Cell], results: Results, runs: Path, record_drawn: bool = True
) -> list[str]:
    """Complete all runs of the cells, except those whose figures are stored.

    A failed run does not stop the others; the errors are returned, one line per run.
    `record_drawn` records which examples each run drew.
    """
    for folder in (results.folder, runs):
        folder.mkdir(parents=True, exist_ok=True)
    rounds = max((len(one.seeds) for one in cells), default=0)
    every = [(one, one.seeds[k]) for k in range(rounds) for one in cells if k < len(one.seeds)]
    if record_drawn:  # cell after cell: each file is complete early
        every = [(one, seed) for one in cells for seed in one.seeds]
    left = [(one, seed) for one, seed in every if seed not in results.figures_by_seed(one)]
    print(f"{len(every) - len(left)} of {len(every)} runs are done, {len(left)} remain", flush=True)
    busy, failed = list[tuple[Cell, int]](), list[str]()

    def attempt(one: Cell, seed: int, wait: bool) -> None:
        try:
            if not run_seed(one, seed, results, runs, record_drawn, wait=wait):
                busy.append((one, seed))
        except UserError as error:
            failed.append(f"{one.name}, seed {seed}: {error}")
            if not wait:
                print(f"{failed[-1]}; the other runs continue", flush=True)

    for number, (one, seed) in enumerate(left):
        print(f"\n{one.name}, seed {seed}: {len(left) - number} runs left", flush=True)
        attempt(one, seed, wait=False)
    for one, seed in list(busy):  # another worker runs them; if it stops, run them here
        attempt(one, seed, wait=True)
    return failed


def run_seed(
    one: Cell, seed: int, results: Results, runs: Path, record_drawn: bool, wait: bool
) -> bool:
    """Train with one seed, after the runs that it needs, and store its figures.

    Return False if another worker trains it and `wait` is not set.
    """
    if seed not in results.figures_by_seed(one):
        complete_earlier_runs(one, seed, results, runs, record_drawn)
    folder = one.run_folder(seed, runs)
    with file_lock(folder, wait) as mine:
        if mine and seed not in results.figures_by_seed(one):
            run_and_store(one, seed, results, runs, record_drawn)
        return mine


def complete_earlier_runs(
    one: Cell, seed: int, results: Results, runs: Path, record_drawn: bool
) -> None:
    """Train the runs from which a run starts or learns, unless their folders are here.

    A finished folder is needed: the stored figures have no weights. Print a line if the figures of
    such a run are stored, because they are replaced.
    """
    for cell, number in one.earlier_runs(seed):
        folder = cell.run_folder(number, runs)
        with file_lock(folder):
            if results.finished_folder(cell, number, runs) is None:
                gone = not (folder / "config.json").exists()
                if gone and number in results.figures_by_seed(cell):
                    line = f"expected the finished run, from which {one.name} starts or learns"
                    again = "it is trained again and replaces its stored figures"
                    print(f"{folder}: {line}, found none: {again}", flush=True)
                complete_earlier_runs(cell, number, results, runs, record_drawn)
                run_and_store(cell, number, results, runs, record_drawn)


def run_and_store(one: Cell, seed: int, results: Results, runs: Path, record_drawn: bool) -> None:
    """Do a cell's work with a seed and store its figures."""
    config, folder = one.run_config(seed, runs), one.run_folder(seed, runs)
    if record_drawn:
        record_examples(config, results.folder, runs)
    results.add(one, seed, one.run_function(config, folder), runs)
    if not one.keeps_folder:
        shutil.rmtree(folder)
