"""Tuning of SCL-MOO's settings on dev, with Optuna over the paper's grids: python -m studies.tuning

Several workers may share a storage (`--storage`: a database's URL, by default a SQLite file) and
continue where others stopped. A finished run is stored and never repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from common.entry_point import start
from common.errors import UserError
from multitask.assembly import plain_tasks
from multitask.config import RunConfig
from reports.tables import text_table
from studies.arguments import positive
from studies.claims import shown
from studies.results import Cell, Results
from studies.runner import run_cells, training
from studies.scl_moo.cells import GRID, METHODS, SEEDS, SHOTS, TASKS, Experiments
from studies.study import absent_tasks, raise_if_failed
from tasks import data_folder

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.storages import RDBStorage


def best_table(tuning: Tuning, study: Study, count: int = 5) -> str:
    """Return a table of the best settings on dev; their test figures select nothing."""
    finished = [trial for trial in study.get_trials() if trial.value is not None]
    different = {tuple(trial.params.items()): trial for trial in finished}.values()
    rows = [
        [
            *(f"{value:g}" for value in trial.params.values()),
            shown(tuning.accuracy(trial.params, "dev")),
            shown(tuning.accuracy(trial.params, "test")),
        ]
        for trial in sorted(different, key=lambda trial: -(trial.value or 0))[:count]
    ]
    return text_table([*tuning.space, "dev", "test"], rows)


def check(tuning: Tuning) -> None:
    """Raise UserError if the data are missing or have too few examples."""
    one = tuning.cell(tuning.points()[0])
    if absent := absent_tasks([one]):
        found = f"found no {absent[tuning.task]}"
        raise UserError(f"{one.config.data}: expected data of {tuning.task}, {found}")
    task = plain_tasks(one.config)[tuning.task]
    task.read(data_folder(one.config.data), "train")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.tuning", description=__doc__)
    parser.add_argument("--data", required=True, help="folder with GLUE's files")
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument(
        "--shots", type=positive(int), default=SHOTS[1], help=f"examples (default: {SHOTS[1]})"
    )
    parser.add_argument(
        "--method", choices=[name for name in METHODS if name != "ce"], required=True
    )
    parser.add_argument("--seeds", type=int, default=3, choices=range(1, len(SEEDS) + 1))
    parser.add_argument("--trials", type=positive(int), help="maximum number now (default: all)")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument(
        "--lr",
        type=positive(float),
        default=1e-5,
        help="learning rate (default: 1e-5, the paper's for RoBERTa base; 1e-4 suits minilm)",
    )
    parser.add_argument("--epochs", type=positive(int))
    parser.add_argument("--results", type=Path, default=Path("results/scl_moo-tuning"))
    parser.add_argument("--runs", type=Path, default=Path("runs/scl_moo-tuning"))
    parser.add_argument("--storage", help="database's URL (default: a SQLite file in --results)")
    args = parser.parse_args()
    args.results.mkdir(parents=True, exist_ok=True)
    base = RunConfig(
        mode="single", tasks=(), data=args.data, encoder=args.encoder, lr=args.lr, head_lr=args.lr
    )
    cells = Experiments(base, args.epochs)
    tuning = Tuning(
        cells, args.task, args.shots, args.method, SEEDS[: args.seeds], args.results, args.runs
    )
    check(tuning)
    study = tune(tuning, args.storage or f"sqlite:///{args.results}/optuna.db", args.trials)
    print(best_table(tuning, study))
    if left := missing(tuning, study, running=False):
        print(f"{len(left)} of {len(tuning.points())} points have no result yet")
    raise_if_failed(failures(tuning, study))


if __name__ == "__main__":
    start("python -m studies.tuning", main)


RATIOS = GRID  # of r_1; section 4.1 ends at 0.5, but `minilm` is best on dev above it
FAILURE = "failure"  # trial attribute with the error message
STALE = 600  # seconds without heartbeat after which a worker's point is queued again


@dataclass(frozen=True)
class Tuning:
    """One task, number of examples and method, evaluated by mean dev accuracy over `seeds`."""

    cells: Experiments
    task: str
    shots: int
    method: str
    seeds: tuple[int, ...]
    results: Path
    runs: Path

    @property
    def space(self) -> dict[str, list[float]]:
        """Return the paper's grids of the method's settings; that of r_1 is longer."""
        ratios = {"scl_preference": list(RATIOS)} if self.method in ("ls", "epo") else {}
        return {"scl_temperature": list(GRID), "scl_weight": list(GRID), **ratios}

    @property
    def name(self) -> str:
        """Return the study's name, which depends on configuration, number of seeds and grid."""
        one = self.cells.few_shot(self.task, self.shots, self.method, self.seeds)
        seeds = len(self.seeds)
        grid = hashlib.sha256(json.dumps(self.space).encode()).hexdigest()[:4]
        return f"tune-{self.task}-{self.shots}-{self.method}-{one.config.digest()}-{seeds}-{grid}"

    def points(self) -> list[dict[str, float]]:
        """Return all points of the grid."""
        return [
            dict(zip(self.space, point, strict=True)) for point in product(*self.space.values())
        ]

    def cell(self, chosen: Mapping[str, float]) -> Cell:
        one = self.cells.few_shot(self.task, self.shots, self.method, self.seeds)
        settings: dict[str, Any] = dict(chosen)
        if "scl_preference" in chosen:
            settings["scl_preference"] = chosen["scl_preference"], 1 - chosen["scl_preference"]
        suffix = "-".join(f"{key.removeprefix('scl_')}{value:g}" for key, value in chosen.items())
        config = one.config.changed(**settings)
        return Cell(f"{self.name}-{suffix}", config, self.seeds, training)

    def accuracy(self, chosen: Mapping[str, float], split: str) -> list[float]:
        """Return the accuracy of each finished seed."""
        found = Results(self.results).values(self.cell(chosen), split, self.task, "accuracy")
        return [found[seed] for seed in self.seeds if seed in found]

    def judge(self, trial: Trial) -> float:
        """Train with the settings of a trial and return the mean dev accuracy."""
        chosen = {
            key: float(trial.suggest_categorical(key, grid)) for key, grid in self.space.items()
        }
        raise_if_failed(run_cells([self.cell(chosen)], Results(self.results), self.runs))
        return float(np.mean(self.accuracy(chosen, "dev")))


def tune(tuning: Tuning, storage: str, trials: int | None = None) -> Study:
    """Evaluate the points without a result, all of them or at most `trials`.

    Points are queued in the storage, where any worker takes the next one. Those of a stopped worker
    are queued again. A failed point is reported by `failures`; the next call tries it again.
    """
    import optuna

    study = optuna.create_study(
        storage=opened(storage), study_name=tuning.name, direction="maximize", load_if_exists=True
    )
    failed: list[dict[str, float]] = []

    def judge(trial: Trial) -> float:
        try:
            return tuning.judge(trial)
        except UserError as error:
            trial.set_user_attr(FAILURE, str(error))
            failed.append(trial.params)
            raise

    judged = 0
    while trials is None or judged < trials:
        optuna.storages.fail_stale_trials(study)
        if not waiting(study):
            for point in missing(tuning, study):
                if point not in failed:
                    study.enqueue_trial(point)
        if not waiting(study):
            return study
        study.optimize(judge, n_trials=1, catch=(UserError,))
        judged += 1
    return study


def opened(storage: str) -> RDBStorage:
    """Open the storage of a database's URL; raise UserError if that fails."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # the runs print their progress
    try:
        return optuna.storages.RDBStorage(storage, heartbeat_interval=60, grace_period=STALE)
    except (SQLAlchemyError, ImportError) as error:
        found = str(error).splitlines()[0]
        raise UserError(
            f"--storage {storage}: expected a database's URL, found: {found}"
        ) from error


def failures(tuning: Tuning, study: Study) -> list[str]:
    """Return the errors of failed points that still have no result."""
    from optuna.trial import TrialState

    failed = {
        tuple(trial.params.items()): trial.user_attrs[FAILURE]
        for trial in study.get_trials(states=(TrialState.FAIL,))
        if FAILURE in trial.user_attrs and trial.params in missing(tuning, study)
    }
    return [f"{', '.join(f'{k} {v:g}' for k, v in point)}: {why}" for point, why in failed.items()]


def waiting(study: Study) -> bool:
    from optuna.trial import TrialState

    return bool(study.get_trials(deepcopy=False, states=(TrialState.WAITING,)))


def missing(tuning: Tuning, study: Study, running: bool = True) -> list[dict[str, float]]:
    """Return points without a result; with `running`, omit those being evaluated now."""
    from optuna.trial import TrialState

    states = (TrialState.COMPLETE, *((TrialState.RUNNING,) if running else ()))
    known = [trial.params for trial in study.get_trials(deepcopy=False, states=states)]
    return [point for point in tuning.points() if point not in known]
