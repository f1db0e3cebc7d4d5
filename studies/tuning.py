"""Settings of SCL-MOO chosen on dev, by Optuna over the paper's grids: python -m studies.tuning

Any number of workers may share a storage (`--storage`, a file here or a database's URL) and go on
where others stopped. A run is kept once it is finished and never repeated.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from common.entry_point import start
from multitask.assembly import plain_tasks
from multitask.config import RunConfig
from reports.tables import text_table
from studies.arguments import positive
from studies.cell_selection import there
from studies.scl_moo.experiments import METHODS, SEEDS, SHOTS, TASKS, Experiments
from studies.scl_moo.search import Tuning, failures, missing, tune
from studies.seeds import shown, tell_failed
from tasks import data_folder

if TYPE_CHECKING:
    from optuna import Study


def best_table(tuning: Tuning, study: Study, count: int = 5) -> str:
    """The settings that are best on dev; test beside them, by which nothing was chosen."""
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
    """UserError where the data, or as many examples, are not there."""
    one = tuning.cell(tuning.points()[0])
    there([one])
    task = plain_tasks(one.config)[tuning.task]
    task.read(data_folder(one.config.data), "train")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.tuning", description=__doc__)
    parser.add_argument("--data", required=True, help="folder with GLUE's files")
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument(
        "--shots", type=positive(int), default=SHOTS[1], help=f"(default: {SHOTS[1]})"
    )
    parser.add_argument(
        "--method", choices=[name for name in METHODS if name != "ce"], required=True
    )
    parser.add_argument("--seeds", type=int, default=3, choices=range(1, len(SEEDS) + 1))
    parser.add_argument("--trials", type=positive(int), help="at most so many now; by default all")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument(
        "--lr",
        type=positive(float),
        default=1e-5,
        help="the paper's, of RoBERTa base, by default; 1e-4 suits minilm",
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
        print(f"{len(left)} of {len(tuning.points())} points are not judged yet")
    tell_failed(failures(tuning, study))


if __name__ == "__main__":
    start("python -m studies.tuning", main)
