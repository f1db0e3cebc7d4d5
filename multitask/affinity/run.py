"""The joint runs, their measures, and the estimates in a folder. No torch is imported here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.atomic_files import remove
from common.errors import RunError, SettingsError
from common.json_files import write_json
from common.suggestions import suggestion
from multitask.affinity.estimators import ESTIMATORS
from multitask.affinity.measures import Measures, measures_file
from multitask.affinity.result import Affinity, affinity_of
from multitask.checkpoint_folders import listed
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.methods import UserMethods
from multitask.run_folder import RunFolder

DEFAULT = "lookahead"
ROUNDS, GROUPS = 16, 3
FILE = "affinity.json"
JOINT, MEASURES = "joint-seed", "measures-seed"  # folders, with the seed
ADVICE, ADVISED = "advice", "advised"  # settings of the runs to try, and the folder of these runs
RATE = "rate-"  # folders of short joint runs with other rates, with the rate


def measure_affinity(
    config: RunConfig,
    folder: str | Path,
    *,
    estimator: str = DEFAULT,
    groups: int = GROUPS,
    rounds: int = ROUNDS,
    seeds: int = 1,
    overwrite: bool = False,
    control: RunControl = RunControl(),
) -> Affinity:
    """Train tasks jointly, measure their gradients, and estimate which tasks help each other.

    Finished runs and measures in `folder` are kept and an unfinished run is continued, so that the
    same call goes on after an interruption.

    Args:
        config: the joint run, with the tasks; a part of the data (`limit`) and a few epochs are
            enough. The gradients are measured after each epoch.
        folder: folder of the joint runs `joint-seedN`, of their measures `measures-seedN`, and of
            `affinity.json` with all estimates.
        estimator: gram, lookahead or linear; all are computed, and this one is the result's
            `chosen`.
        groups: largest number of groups of tasks.
        rounds: batches of each task that are measured after an epoch; an even number.
        seeds: joint runs, with the seed of `config` and the following ones.
        overwrite: train and measure again.
        control: options of the joint runs.

    Returns:
        The estimates: gains of pairs with intervals, gains of subsets, and groups of tasks.

    Raises:
        SettingsError: for a configuration without gradients of several tasks on one encoder.
        RunError: for a folder with other content, and for measures that are missing.
    """
    from multitask.affinity.probe import MeasureEpochs
    from multitask.precision import of_first_run
    from multitask.run import complete

    for fault in faults(config, estimator, groups, rounds, seeds):
        raise SettingsError(fault)
    config, folder = joint_config(config), Path(folder)
    check_folder(folder)
    points, origins, seconds = list[Measures](), list[int](), 0.0
    first = of_first_run(folder / f"{JOINT}{config.seed}", config, overwrite)
    for seed in range(config.seed, config.seed + seeds):
        run, kept = folder / f"{JOINT}{seed}", folder / f"{MEASURES}{seed}"
        if overwrite:
            remove(kept, ignore_errors=True)
        one = config.changed(seed=seed, precision=first.precision)
        measuring = MeasureEpochs(kept, rounds)
        metrics = complete(one, run, with_callback(control, measuring, overwrite))
        points += measures_of(folder, seed, rounds, config.user_methods)
        origins += [seed] * config.epochs
        seconds += metrics["training_seconds"]
    found = affinity_of(config.tasks, points, origins, estimator, groups, seconds)
    write_json(folder / FILE, found.to_json())
    return found


def joint_config(config: RunConfig) -> RunConfig:
    """Return the configuration of the joint run, which keeps the weights of each epoch in turn."""
    return config.changed(mode="multitask", keep="last", evaluate_every=1, patience=None)


def faults(
    config: RunConfig, estimator: str, groups: int, rounds: int, seeds: int
) -> Iterator[str]:
    """Yield what contradicts the measurement, one line each."""
    if len(config.tasks) < 2:
        yield f"tasks: expected two or more, found {', '.join(config.tasks) or 'none'}"
    if config.freeze_encoder or config.probe_epochs:
        key = "freeze_encoder" if config.freeze_encoder else "probe_epochs"
        yield f"{key}: expected an encoder in training, whose gradients are measured, found none"
    for key, value in {"keep": "last", "evaluate_every": 1, "patience": None}.items():
        if (given := config.given.get(key, value)) != value:
            yield f"{key}: expected {value}, because each epoch is measured, found {given}"
    if config.first() is not None:
        yield f"{config.first_method.strip('-')}: expected all tasks in every epoch"
    if estimator not in ESTIMATORS:
        known = ", ".join(ESTIMATORS)
        line = f"estimator: expected one of {known}, found {estimator!r}"
        yield line + suggestion(estimator, ESTIMATORS)
    if rounds < 2 or rounds % 2:
        yield f"rounds: expected an even number from 2, found {rounds}"
    for name, value in (("groups", groups), ("seeds", seeds)):
        if value < 1:
            yield f"{name}: expected a number from 1, found {value}"
    if os.environ.get("WORLD_SIZE", "1") != "1":
        yield "tasks: expected one process, found several (torchrun)"


def check_folder(folder: Path) -> None:
    """Raise RunError if a folder has other content than a measurement's."""
    known = (".", JOINT, MEASURES, "affinity", "figures", ADVICE, ADVISED, RATE)
    for path in listed(folder):
        if not path.name.startswith(known):
            line = f"expected a new or empty folder, or one of mode affinity, found {path.name}"
            raise RunError(f"{folder}: {line}; choose another --output")


def with_callback(control: RunControl, callback: Any, overwrite: bool) -> RunControl:
    """Return the control of a run that goes on and calls a further callback."""
    several = (*control.callbacks, callback)
    return replace(control, resume=not overwrite, overwrite=overwrite, callbacks=several)


def measures_of(
    folder: Path, seed: int, rounds: int = ROUNDS, user_methods: UserMethods = ()
) -> list[Measures]:
    """Return the measures of each epoch of a finished joint run in the folder of a measurement.

    Raise RunError if some are missing.
    """
    config, found = RunFolder(folder / f"{JOINT}{seed}").config(user_methods), []
    for epoch in range(1, config.epochs + 1):
        file = measures_file(folder / f"{MEASURES}{seed}", epoch, rounds)
        one = Measures.load(file, config.digest())
        if one is None:
            line = "expected the measures of this run, found none; --overwrite trains it again"
            raise RunError(f"{file}: {line}")
        found.append(one)
    return found
