"""Cells of many small runs, one a seed: all of a cell in one JSON file, written seed by seed.

Any number of workers may share `results` and `runs`: each takes what no other is at.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.atomic_files import alone
from common.errors import UserError
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.run import complete
from multitask.telemetry import read_steps
from reports.cells import as_kept, check_config, read_cell, write_cell
from reports.tables import mean_and_spread
from studies.cells import until
from studies.faults import Fault, fault_of, left_out
from studies.ids import keep_ids

KEPT = (
    *("dev", "test", "best_epoch", "steps", "combiner_steps", "rays", "training_seconds"),
    "seconds",
)


SHORT = RunControl(resume=True, every_epoch=False)  # runs of minutes, hundreds of them
Work = Callable[[RunConfig, Path], dict[str, Any]]  # a configuration, its folder -> what is kept


def training(config: RunConfig, folder: Path) -> dict[str, Any]:
    """One run."""
    metrics = complete(config, folder, SHORT)
    found = {key: metrics[key] for key in KEPT if key in metrics}
    return found | {"mean_weights": mean_weights(folder), "environment": metrics["environment"]}


@dataclass(frozen=True)
class SeedCell:
    """The runs of one configuration, but for their seed, and what is done with each."""

    name: str
    config: RunConfig
    seeds: tuple[int, ...]
    work: Work = training


def run_seed_cells(cells: Sequence[SeedCell], results: Path, runs: Path) -> list[str]:
    """Bring every cell to its end; a seed that is kept in a cell's file is not run again.

    The folders of runs are deleted once their figures are kept: there are hundreds. A run that
    fails does not stop the others; what went wrong is returned, a line a run.
    """
    for folder in (results, runs):
        folder.mkdir(parents=True, exist_ok=True)
    left = [(one, seed) for one in cells for seed in one.seeds if seed not in kept(one, results)]
    count = sum(len(one.seeds) for one in cells)
    print(f"{count - len(left)} of {count} runs are kept, {len(left)} to do", flush=True)
    if faults := left_out(faults_of_seeds(cells, results)):
        print(faults, flush=True)
    begin, busy, failed = time.monotonic(), [], []
    for number, (one, seed) in enumerate(left):
        more = len(left) - number
        print(
            f"\n{one.name}, seed {seed}: {more} runs left{until(begin, number, more)}", flush=True
        )
        try:
            if not run_seed(one, seed, results, runs, wait=False):
                busy.append((one, seed))
        except UserError as error:
            failed.append(f"{one.name}, seed {seed}: {error}")
            print(f"{failed[-1]}; the others go on", flush=True)
    for one, seed in busy:  # another worker is at them; should it stop, they are done here
        try:
            run_seed(one, seed, results, runs)
        except UserError as error:
            failed.append(f"{one.name}, seed {seed}: {error}")
    return failed


def tell_failed(failed: Sequence[str]) -> None:
    """UserError where runs failed, once everything else is written."""
    if failed:
        raise UserError(f"{len(failed)} runs failed, the first: {failed[0]}")


def run_seed(one: SeedCell, seed: int, results: Path, runs: Path, wait: bool = True) -> bool:
    """Train with one seed and add its figures to the cell's file, and the examples it drew.

    False where another worker is at it and this one is not to `wait`.
    """
    config = one.config.changed(seed=seed)
    # A run that was stopped goes on only where it is of the same configuration.
    folder = runs / f"{one.name}-seed{seed}-{config.digest()}"
    with alone(folder, wait) as mine:
        if not mine:
            return False
        if seed in kept(one, results):
            return True
        keep_ids(config, results, runs)
        found = one.work(config, folder)
        with alone(runs / one.name):
            others = kept_with_faults(one, results)
            seeds = {**{str(s): metrics for s, (metrics, _) in others.items()}, str(seed): found}
            write_cell(file_of(one, results), {"config": as_kept(one.config), "seeds": seeds})
        shutil.rmtree(folder)
    return True


def mean_weights(folder: Path) -> dict[str, float]:
    """Of each objective over the steps of a run, from its telemetry."""
    weights: dict[str, list[float]] = {}
    for line in read_steps(folder / "telemetry.jsonl"):
        for name, weight in line["weights"].items():
            weights.setdefault(name, []).append(weight)
    return {name: round(float(np.mean(several)), 4) for name, several in weights.items()}


def kept(one: SeedCell, results: Path) -> dict[int, Mapping[str, Any]]:
    """The figures of a cell by seed, without those that a mended fault touches.

    UserError if its file was edited or is of another configuration.
    """
    found = kept_with_faults(one, results)
    return {seed: metrics for seed, (metrics, fault) in found.items() if fault is None}


def kept_with_faults(
    one: SeedCell, results: Path
) -> dict[int, tuple[Mapping[str, Any], Fault | None]]:
    """All figures of a cell by seed, each with the mended fault that it was made with."""
    file = file_of(one, results)
    if not file.exists():
        return {}
    content = read_cell(file)
    found = {}
    for seed, metrics in content["seeds"].items():
        made = str(metrics.get("environment", {}).get("date", ""))
        found[int(seed)] = metrics, fault_of(content["config"] | {"seed": int(seed)}, made)
    if any(fault is None for _, fault in found.values()):
        check_config(file, one.config, content["config"], ignored=("seed", "linear"))
    return found


def faults_of_seeds(cells: Iterable[SeedCell], results: Path) -> list[Fault]:
    """The fault of each kept run that is left out."""
    every = (found for one in cells for found in kept_with_faults(one, results).values())
    return [fault for _, fault in every if fault is not None]


def file_of(one: SeedCell, results: Path) -> Path:
    return results / f"{one.name}.json"


def values(one: SeedCell, results: Path, *keys: str) -> dict[int, Any]:
    """A figure by seed, such as that of test, sst2, accuracy, for the seeds that have it."""
    found: dict[int, Any] = dict(kept(one, results))
    for key in keys:
        found = {seed: inner[key] for seed, inner in found.items() if key in inner}
    return found


def shared_seeds(several: Collection[Mapping[int, Any]]) -> set[int]:
    """The seeds that all of these have."""
    return set.intersection(*map(set, several)) if several else set()


def of_seeds(found: Mapping[int, float], seeds: Container[int]) -> dict[int, float]:
    """The figures of some seeds: a sweep's, of a cell that has more."""
    return {seed: figure for seed, figure in found.items() if seed in seeds}


def shown(values: Iterable[float], scale: float = 100, digits: int = 1) -> str:
    """Mean ± standard deviation (seeds), in per cent; nothing where there is none."""
    found = [scale * value for value in values]
    return f"{mean_and_spread(found, digits)} ({len(found)})" if found else ""
