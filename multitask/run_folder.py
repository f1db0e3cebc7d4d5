"""The folder of a run: its lock, whether it is this run with this data, its beginning and end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from common.errors import RunError, SettingsError, UserError
from common.files import digest, file_lock, is_run, read_json, remove, write_json
from minbert.sources import encoder_checksum
from multitask.config_tasks import plain_tasks
from multitask.runs import CALIBRATION, Run
from multitask.settings.config import RunConfig
from tasks import build_task, data_folder
from tasks.base import Task
from tasks.predictions import Scores, write_prediction_file, write_scores

ENCODER = "encoder"  # the key of a local encoder's folder in data.json; other keys have a space
# The configuration is removed last, because it marks the folder as a run.
PARTS = (
    *("predictions", "tensorboard", "code", "telemetry.jsonl", CALIBRATION),
    *("data.json", "config.json"),
)


@contextmanager
def locked(run: Run) -> Iterator[None]:
    """Hold the folder of a run for this process; raise RunError if another process does.

    A folder of other files is refused. What killed processes were writing is deleted.
    """
    check_ours(run)
    folder = run.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        line = f"cannot be written: {error.strerror}; choose another --output"
        raise RunError(f"{folder}: {line}") from error
    with file_lock(folder / "run", wait=False) as mine:
        if not mine:
            process = (folder / "run.lock").read_text().strip()
            line = f"process {process} is using it; wait for its end, or choose another --output"
            raise RunError(f"{folder}: {line}")
        for half in (*folder.glob(".*.new"), *(folder / "predictions").glob(".*.new")):
            remove(half)
        try:
            yield
        finally:
            if [one.name for one in folder.glob("*")] == ["run.lock"]:
                remove(folder)


def check_ours(run: Run) -> None:
    """Raise RunError if the folder has files, but no run, so that none is overwritten."""
    stored = run.read("config.json")
    if stored and not is_run(stored):
        file = run.folder / "config.json"
        raise RunError(f"{file}: expected a run's, found another program's")
    names = [] if stored else sorted(one.name for one in run.folder.glob("*"))
    if found := next((n for n in names if n != "run.lock" and not n.startswith(".")), None):
        raise RunError(
            f"{run.folder}: expected a new or empty folder, or a run, found {found} without "
            "a config.json; choose another --output"
        )


def has_results(run: Run) -> bool:
    """Return whether the folder holds metrics, predictions or a checkpoint."""
    found = (run.folder / "metrics.json").exists() or any((run.folder / "predictions").glob("*"))
    return found or any(map(run.newest, ("best", "last")))


def holds(run: Run, config: RunConfig, data: Mapping[str, str], resume: bool) -> bool:
    """Return whether this run is finished in its folder, with equal configuration and data.

    Raise RunError if another run is there, and for an unfinished one without `resume`.
    """
    if not has_results(run):
        return False
    stored, asked = run.settings, config.to_json()
    if key := different_key(stored, asked):
        old, new = stored.get(key), asked.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            inner = str(different_key(old, new))
            key, old = f"{key} {inner}", old.get(inner)
        line = f"here is a run with another {key}: {old!r}"
        advice = f"choose another --output, go on with --config {run.folder / 'config.json'}"
        raise RunError(f"{run.folder}: {line}; {advice}, or add --overwrite")
    before = read_json(run.folder / "data.json", RunError)
    if key := next((k for k in data if before.get(k) != data[k]), None):
        line = f"the run began with another {key} than there is now"
        advice = "restore it, choose another --output, or add --overwrite"
        raise RunError(f"{run.folder}: {line}; {advice}")
    if not run.metrics and not resume:
        advice = "add --resume to go on with it, or --overwrite to start again"
        raise RunError(f"{run.folder}: found an unfinished run; {advice}")
    return bool(run.metrics)


def different_key(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """Return the first key in which two configurations as JSON differ; None if they are equal."""
    return next((key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)), None)


def begin(run: Run, config: Mapping[str, Any], data: Mapping[str, str]) -> None:
    """Write the configuration and the checksums of the data, over a run that is replaced.

    Only a run's own files and folders go, and not the targets of links.
    """
    parts = (run.folder / part for part in PARTS)
    for one in (run.folder / "metrics.json", *run.checkpoints(), *parts):
        remove(one)
    write_json(run.folder / "config.json", config)
    write_json(run.folder / "data.json", data)
    (run.folder / "predictions").mkdir()


def finish(run: Run) -> None:
    """Name the best weights `best`, and delete the checkpoints from which a run resumes."""
    best = run.newest("best")
    if best is not None and best.name != "best":
        remove(run.folder / "best")
        best.rename(run.folder / "best")
    for one in run.checkpoints():
        if one.name != "best":
            remove(one)


def write_predictions(run: Run, task: Task, split: str, table: Scores) -> None:
    """Write the prediction file of a task on a split, if it has one, and the scores."""
    if task.output is not None:
        file = run.folder / "predictions" / task.output.name(split)
        predictions = table.predicted(task.kind.predictions)
        write_prediction_file(file, task.output, table.ids, predictions)
    write_scores(run.scores_file(task.name, split), table)


@contextmanager
def merged_run(
    folder: Path, config: Mapping[str, Any], members: Iterable[Path], overwrite: bool
) -> Iterator[Run]:
    """Hold the folder of a run that is merged from others, or fitted to one of them.

    Raise UserError if the folder is a member's or holds another run, and RunError if it cannot be
    written or another process uses it.
    """
    if folder.resolve() in {one.resolve() for one in members}:
        raise UserError(f"{folder}: expected another --output than a member's folder")
    run = Run(folder)
    with locked(run):
        stored = run.read("config.json")
        if stored and stored != config and not overwrite:
            line = f"expected this {config['mode']} or nothing, found another run"
            raise UserError(f"{folder}: {line}; choose another --output, or add --overwrite")
        yield run


def write_merged(
    run: Run,
    config: Mapping[str, Any],
    metrics: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Scores]],
    data: Mapping[str, str],
) -> None:
    """Write a merged run with its scores by task and split, in place of one that is there.

    `data` are the checksums of the files with the scored examples, by name.
    """
    begin(run, config, data)
    for task, splits in tables.items():
        for split, table in splits.items():
            write_predictions(run, run.task(task), split, table)
    write_json(run.folder / "metrics.json", metrics)


def files(config: RunConfig) -> dict[str, Path]:
    """Return the files of examples and texts that a run reads, by `TASK SPLIT` or `text`."""
    folder = data_folder(config.data)
    found = {
        f"{name} {split}": Path(task.source.where(folder, split))
        for name, task in plain_tasks(config).items()
        for split in task.source.splits
    }
    if config.pretrains and not config.pretraining_objective.of_classes:  # it selects the epoch
        found["sts dev"] = Path(build_task("sts").source.where(folder, "dev"))
    if config.text_file is not None:
        found["text"] = Path(config.text_file)
    return found


def file_digests(config: RunConfig) -> dict[str, str]:
    """Return the SHA-256 of each file that the configuration reads and that is there."""
    return {key: digest(path) for key, path in files(config).items() if path.is_file()}


def source_runs(config: RunConfig) -> dict[str, Path]:
    """Return the folders of `init` and of the teachers by flag."""
    runs = [("--init", config.init)] if config.init else []
    runs += [("--teacher", one) for one in config.teacher]
    return {f"{key} {run}": Path(run) for key, run in runs}


def fingerprint(config: RunConfig) -> dict[str, str]:
    """Return the checksums of all that a run reads and that is there, by name.

    Those are its files, a user's files of methods, a local encoder, and the weights of the runs
    that it begins from or learns from. A finished run does not need them; they may be gone.
    """
    found = file_digests(config)
    found |= {f"--use {name}": digest(file) for name, file in config.source_files().items()}
    if config.init is None and (checksum := encoder_checksum(config.encoder)):
        found[ENCODER] = checksum
    for key, run in source_runs(config).items():
        with suppress(RunError):
            found[key] = Run(run).weights_checksum()
    return found


def check_inputs_stay(folder: Path, config: RunConfig) -> None:
    """Raise SettingsError for an input of a run in the folder that the run replaces."""
    inputs = {"--encoder": Path(config.encoder)} | files(config) | source_runs(config)
    for key, path in inputs.items():
        if path.exists() and path.resolve().is_relative_to(folder.resolve()):
            line = f"expected a path outside of the folder of the run, found {path}"
            raise SettingsError(f"{key}: {line}; choose another --output")


def has_changed(folders: Iterable[Run], task: str, split: str, path: Path) -> bool:
    """Return whether the file of a split has another checksum than when one of the runs began."""
    if not path.is_file():
        return False
    key, found = f"{task} {split}", digest(path)
    return any(folder.read("data.json").get(key, found) != found for folder in folders)
