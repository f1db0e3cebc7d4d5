"""Runs that a run begins from or learns from: that of `init`, and the teachers.

The folder of a run holds the checksums of their weights, so that other weights are noticed.
"""

from __future__ import annotations

from pathlib import Path

from common.errors import RunError, SettingsError
from common.json_files import read_json, write_json
from multitask.config import RunConfig
from multitask.run_folder import SOURCE_RUNS, RunFolder
from multitask.teachers import teachers_by_task


def source_runs(config: RunConfig) -> dict[str, list[Path]]:
    """Return the folders of runs by `init` and `teacher`. An ensemble stands for its members."""
    teachers = {run for several in teachers_by_task(config).values() for run in several}
    start = [] if config.init is None else [Path(config.init)]
    return {"init": start, "teacher": sorted(teachers)}


def check_source_folders(folder: Path, config: RunConfig) -> None:
    """Raise SettingsError if the folder of a run is that of a run it needs, or of an ensemble."""
    found = source_runs(config)
    found["teacher"] += map(Path, config.teacher)
    for key, several in found.items():
        for run in several:
            if run.resolve() == folder.resolve():
                line = "expected two folders, found the same"
                raise SettingsError(f"{key} and output: {line}: {run}")


def check_encoder_of_init(config: RunConfig) -> None:
    """Raise SettingsError if the run in `init` has another encoder."""
    if config.init and config.encoder != (brought := RunFolder(Path(config.init)).encoder()):
        line = f"expected {brought}, the encoder of init, found {config.encoder}"
        raise SettingsError(f"encoder: {line}")


def write_source_runs(folder: Path, config: RunConfig) -> None:
    """Write the checksums of the weights of all source runs to the folder of a run."""
    sums = {
        key: {str(run): RunFolder(run).weights_checksum() for run in several}
        for key, several in source_runs(config).items()
    }
    if any(sums.values()):
        write_json(folder / SOURCE_RUNS, sums)


def check_source_runs(folder: Path, finished: bool = False) -> None:
    """Raise RunError if the weights of a source run changed since the run in `folder` began.

    A `finished` run does not need them any more: they may be gone.
    """
    file = folder / SOURCE_RUNS
    if not file.exists():
        return
    for key, sums in read_json(file, RunError).items():
        for run, before in sums.items():
            source = RunFolder(Path(run))
            if finished and source.weights_if_any() is None:
                continue
            if (found := source.weights_checksum()) != before:
                raise RunError(
                    f"--{key} {run}: expected the weights {str(before)[:12]}, with which this run "
                    f"began, found {found[:12]}; restore them, or --overwrite the run"
                )
