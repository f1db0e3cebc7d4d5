"""Advised runs: systems to compare, the reasons of their settings, and the gains promised.

They are stored, so that `compare --advice` can show the promises beside the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.json_files import seal_of
from multitask.affinity.result import Promise
from multitask.affinity.run import ADVICE, ADVISED
from multitask.settings.config import RunConfig
from multitask.settings.run_settings import MACHINE

COMMANDS = "commands.sh"  # the file with the commands of the advised runs
# Settings in which a run may differ from the measurement and from the advice.
OF_THE_RUN = ("seed", "precision", *MACHINE)


@dataclass(frozen=True)
class AdvisedRun:
    """A run to train: its name, its configuration, and its estimated seconds of training."""

    name: str
    config: RunConfig
    seconds: float

    def settings_file(self, root: Path) -> Path:
        """Return the file of the run's settings, below the folder of the advice."""
        return root / ADVICE / f"{self.name}.json"

    def folder(self, root: Path, seed: int) -> Path:
        """Return the folder of the run with this seed, below that of the advice."""
        return run_folder(root, self.name, seed)


def run_folder(root: Path, name: str, seed: int) -> Path:
    """Return the folder of an advised run of this name and seed, below that of the advice."""
    return root / ADVISED / f"{name}-seed{seed}"


@dataclass(frozen=True)
class AdvisedSystem:
    """Runs that serve each task once. `promises` are the estimated gains over `singles`, by task.

    They are empty where nothing estimates them: for `singles` itself, and for branches.
    """

    name: str
    runs: tuple[AdvisedRun, ...]
    promises: Mapping[str, Promise]

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.runs)


@dataclass(frozen=True)
class Choice:
    """A setting of the runs of some tasks, with its reason."""

    tasks: tuple[str, ...]
    setting: str
    value: str
    reason: str


@dataclass(frozen=True)
class Advice:
    """Systems to train and compare, the first of them one model per task; `best` is advised.

    Promises are gains by `estimator`. The runs of each of `seeds` form a comparison.
    """

    estimator: str
    systems: tuple[AdvisedSystem, ...]
    best: str
    choices: tuple[Choice, ...]
    seeds: tuple[int, ...]

    @property
    def runs(self) -> list[AdvisedRun]:
        """All runs, each once: systems may share them."""
        found = {run.name: run for system in self.systems for run in system.runs}
        return list(found.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "estimator": self.estimator,
            "best": self.best,
            "seeds": list(self.seeds),
            "choices": [vars(one) | {"tasks": list(one.tasks)} for one in self.choices],
            "systems": [
                {
                    "name": system.name,
                    "runs": [run.name for run in system.runs],
                    "promises": {task: vars(one) for task, one in system.promises.items()},
                }
                for system in self.systems
            ],
            "seconds": {run.name: round(run.seconds, 1) for run in self.runs},
            "settings": {run.name: seal_of(run.config.to_json()) for run in self.runs},
        }
