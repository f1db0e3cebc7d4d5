"""The joint runs, their measures, and the estimates in a folder. No torch is imported here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.atomic_files import paths_in, remove
from common.errors import RunError, SettingsError
from common.folder_content import folder_of_runs
from common.json_files import write_json
from common.processes import several_processes
from common.settings import convert
from common.suggestions import suggestion
from multitask.affinity.estimators import ESTIMATORS
from multitask.affinity.measures import FEWEST_ROUNDS, MeasureFiles, Measures
from multitask.affinity.result import Affinity, affinity_of
from multitask.control import RunControl
from multitask.settings.config import RunConfig
from multitask.settings.methods import UserMethods
from multitask.storage.run_folder import RunFolder

DEFAULT = "gram"
ROUNDS, GROUPS = 16, 3
FILE = "affinity.json"
EVERY_EPOCH = {"keep": "last", "evaluate_every": 1, "patience": None}  # of the joint run
JOINT, MEASURES = "joint-seed", "measures-seed"  # folders, with the seed
ADVICE, ADVISED = "advice", "advised"  # settings of the runs to try, and the folder of these runs
RATE = "rate-"  # folders of short joint runs with other rates, with the rate
PREFIXES = (JOINT, MEASURES, "affinity", "figures", ADVICE, ADVISED, RATE)  # of all that is written


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
        rounds: largest number of batches of each task that are measured after an epoch; an even
            number from 4. The task with the fewest batches sets the number for all tasks.
        seeds: joint runs, with the seed of `config` and the following ones.
        overwrite: train and measure again, as does `control.overwrite`.
        control: options of the joint runs.

    Returns:
        The estimates: gains of pairs with intervals, gains of subsets, and groups of tasks.

    Raises:
        SettingsError: for a configuration without gradients of several tasks on one encoder.
        RunError: for a folder with other content, for measures that are missing, and for a joint
            run that a callback stopped.
    """
    groups, rounds, seeds = (
        convert(name, int, value)
        for name, value in (("groups", groups), ("rounds", rounds), ("seeds", seeds))
    )
    for fault in faults(config, estimator, groups, rounds, seeds):
        raise SettingsError(fault)
    config, folder, overwrite = joint_config(config), Path(folder), overwrite or control.overwrite
    measured = any(path.name.startswith((JOINT, "affinity")) for path in paths_in(folder))
    with folder_of_runs(folder, "mode affinity", (), PREFIXES if measured else ()):
        points, origins, seconds = measured_runs(config, folder, rounds, seeds, overwrite, control)
        found = affinity_of(config.tasks, points, origins, estimator, groups, seconds)
        write_json(folder / FILE, found.to_json())
    return found


def measured_runs(
    config: RunConfig, folder: Path, rounds: int, seeds: int, overwrite: bool, control: RunControl
) -> tuple[list[Measures], list[int], float]:
    """Complete the joint runs; return the measures of all epochs, their seeds, and the seconds.

    Raise RunError for a run that a callback stopped, and to `overwrite` runs with advised ones.
    """
    from multitask.affinity.probe import MeasureEpochs
    from multitask.precision import of_first_run
    from multitask.run import complete

    if overwrite:  # advice follows from the measurement that is replaced
        if trained := paths_in(folder / ADVISED):
            line = "expected no runs of an advice, whose promises would be lost"
            raise RunError(f"{trained[0]}: {line}; move {ADVISED} away, or choose another --output")
        for name in (f"{ADVICE}.json", ADVICE):
            remove(folder / name)
    points, origins, seconds = list[Measures](), list[int](), 0.0
    first = of_first_run(folder / f"{JOINT}{config.seed}", config, overwrite)
    for seed in range(config.seed, config.seed + seeds):
        run, files = folder / f"{JOINT}{seed}", measure_files(folder, seed, rounds)
        one = config.changed(seed=seed, precision=first.precision)
        metrics = complete(one, run, with_callback(control, MeasureEpochs(files), overwrite))
        if "stopped" in metrics:
            line = f"expected a run of {config.epochs} epochs, found one stopped by a callback"
            raise RunError(f"{run}: {line} after {metrics['epochs']}")
        points += measures_of(folder, seed, rounds, config.user_methods)
        origins += [seed] * config.epochs
        seconds += metrics["training_seconds"]
    return points, origins, seconds


def joint_config(config: RunConfig) -> RunConfig:
    """Return the configuration of the joint run, which keeps the weights of each epoch in turn."""
    return config.changed(mode="multitask", **EVERY_EPOCH)


def faults(
    config: RunConfig, estimator: str, groups: int, rounds: int, seeds: int
) -> Iterator[str]:
    """Yield what contradicts the measurement, one line each."""
    if len(config.tasks) < 2:
        yield f"tasks: expected two or more, found {', '.join(config.tasks) or 'none'}"
    if config.freeze_encoder or config.probe_epochs:
        key = "freeze_encoder" if config.freeze_encoder else "probe_epochs"
        yield f"{key}: expected an encoder in training, whose gradients are measured, found none"
    for key, value in EVERY_EPOCH.items():
        if (given := config.given.get(key, value)) != value:
            yield f"{key}: expected {value}, because each epoch is measured, found {given}"
    if config.first() is not None:
        yield f"{config.first_method}: expected all tasks in every epoch"
    if estimator not in ESTIMATORS:
        known = ", ".join(ESTIMATORS)
        line = f"estimator: expected one of {known}, found {estimator!r}"
        yield line + suggestion(estimator, ESTIMATORS)
    if rounds < FEWEST_ROUNDS or rounds % 2:
        yield f"rounds: expected an even number from {FEWEST_ROUNDS}, found {rounds}"
    for name, value in (("groups", groups), ("seeds", seeds)):
        if value < 1:
            yield f"{name}: expected a number from 1, found {value}"
    if several_processes():
        yield "tasks: expected one process, found several (torchrun)"


def with_callback(control: RunControl, callback: Any, overwrite: bool) -> RunControl:
    """Return the control of a run that goes on and calls a further callback."""
    several = (*control.callbacks, callback)
    return replace(control, resume=not overwrite, overwrite=overwrite, callbacks=several)


def measures_of(
    folder: Path, seed: int, rounds: int = ROUNDS, user_methods: UserMethods = ()
) -> list[Measures]:
    """Return the measures of each epoch of a finished joint run in the folder of a measurement.

    Raise RunError if some are missing or have too few rounds.
    """
    files = measure_files(folder, seed, rounds)
    config = RunFolder(files.run).config(user_methods)
    found = files.stored(config, config.epochs)
    if (count := min(len(one.losses) for one in found)) < FEWEST_ROUNDS:
        line = f"expected {FEWEST_ROUNDS} or more measured batches of each task, found {count}"
        raise RunError(f"{files.folder}: {line}; a smaller batch size gives more")
    return found


def measure_files(folder: Path, seed: int, rounds: int) -> MeasureFiles:
    return MeasureFiles(folder / f"{MEASURES}{seed}", folder / f"{JOINT}{seed}", rounds)
