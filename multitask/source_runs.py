"""Runs that a run begins from or learns from: that of `init`, and the teachers.

The folder of a run holds the checksums of their weights and how much each teacher counts, so that a
change is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common.errors import RunError, SettingsError, UserError
from common.json_files import read_json, write_json
from common.settings import accepts
from multitask.settings.config import RunConfig
from multitask.storage.data_files import digest_of
from multitask.storage.run_folder import SOURCE_RUNS, RunFolder
from multitask.teachers import teachers_by_task
from tasks.own_types.base import TaskDescription
from tasks.task_description import from_json

REMEDY = "add --overwrite, or remove the folder of this run"


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


def check_source_weights(config: RunConfig) -> None:
    """Raise RunError if a run of `init` or `teacher` is missing or has no weights.

    Raise SettingsError for a teacher of none of the tasks.
    """
    for several in source_runs(config).values():
        for run in several:
            RunFolder(run).published_weights()


def source_content(config: RunConfig) -> dict[str, dict[str, Any]]:
    """Return the checksums of the weights of all source runs, and the shares of the teachers.

    The shares change with the members of an ensemble. Empty without source runs.
    """
    content: dict[str, dict[str, Any]] = {
        key: {str(run): RunFolder(run).weights_checksum() for run in several}
        for key, several in source_runs(config).items()
    }
    content["shares"] = shares(config)
    return content if any(content.values()) else {}


def shares(config: RunConfig) -> dict[str, dict[str, str]]:
    """Return how much each teacher of a task counts: task -> run -> fraction."""
    every = teachers_by_task(config)
    return {
        task: {str(run): str(share) for run, share in several.items()}
        for task, several in every.items()
        if several
    }


def tasks_with_seen_rows(config: RunConfig) -> list[str]:
    """Return the own tasks of whose dev or test rows the run `init`, or one before it, may know.

    Raise RunError for tasks of these runs that cannot be read.
    """
    own = {name: from_json(name, content) for name, content in config.own_tasks.items()}
    before = list(tasks_before(config))
    # Of each file once, which several tasks may share.
    files = {one.train for one in own.values()} if before else ()
    found = {file: digest_of(Path(file)) for file in files}
    return [
        name
        for name, one in own.items()
        if any(may_have_seen(other, stored, one, found[one.train]) for other, stored in before)
    ]


def tasks_before(config: RunConfig) -> Iterator[tuple[TaskDescription, str | None]]:
    """Yield the own tasks of the run `init` and of those before it.

    The checksum of the training file when the run began is beside each, None if it is not stored.
    """
    runs, run = list[Path](), config.init
    while run and Path(run) not in runs:
        runs.append(Path(run))
        folder = RunFolder(Path(run))
        stored, checksums = folder.settings_if_any() or {}, folder.data_checksums()
        for name, content in stored.get("own_tasks", {}).items():
            try:
                yield from_json(name, content), checksums.get(f"{name} train")
            except UserError as error:
                raise RunError(f"{run}: {error}") from error
        run = stored.get("init")


def may_have_seen(
    other: TaskDescription, stored: str | None, one: TaskDescription, found: str | None
) -> bool:
    """Return whether dev or test rows of `one` may be training rows of `other`.

    They are in its training file, which is split otherwise or has changed: its checksum was
    `stored`, and that of the training file of `one` is `found`.
    """
    file = Path(other.train).resolve()
    if file in {Path(path).resolve() for path in (one.dev, one.test) if path}:
        return True
    if one.dev is not None:
        return False
    known = None not in (stored, found)
    changed = known and found != stored
    same = (known and not changed) or file == Path(one.train).resolve()
    return same and (changed or split_of(other) != split_of(one))


def split_of(one: TaskDescription) -> tuple[Any, ...]:
    """Return a key that is equal for tasks that split a training file in the same way."""
    return one.dev is None, one.test is None, one.texts, one.group, one.quotes


def write_source_runs(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the `source_content` with which the run in a folder began, unless it is empty."""
    if content:
        write_json(folder / SOURCE_RUNS, content)


def check_source_runs(folder: Path, config: RunConfig, finished: bool = False) -> None:
    """Raise RunError if a source run changed since the run in `folder` began.

    A `finished` run does not need them any more: they may be gone.
    """
    file = folder / SOURCE_RUNS
    if not file.exists():
        return
    content = read_json(file, RunError)
    if not accepts(dict[str, dict[str, Any]], content):
        raise RunError(f"{file}: expected checksums of runs, found other content; restore it")
    before = content.pop("shares", None)
    gone = [
        run
        for key, sums in content.items()
        for run, expected in sums.items()
        if not has_weights(key, Path(run), expected, finished)
    ]
    gone += [one for one in config.teacher if finished and not RunFolder(Path(one)).has_config()]
    if before is not None and not gone and (now := shares(config)) != before:
        changed = next(task for task in {**before, **now} if before.get(task) != now.get(task))
        raise RunError(
            f"--teacher: {changed}: expected the runs {shown(before.get(changed))}, from which "
            f"this run learns, found {shown(now.get(changed))}; restore the ensemble, or begin "
            f"this run again: {REMEDY}"
        )


def has_weights(key: str, run: Path, expected: str, may_be_gone: bool) -> bool:
    """Return whether a source run has its weights; raise RunError if they are others."""
    source = RunFolder(run)
    if may_be_gone and source.weights_if_any() is None:
        return False
    if (found := source.weights_checksum()) != expected:
        raise RunError(
            f"--{key} {run}: expected the weights {str(expected)[:12]}, with which this "
            f"run began, found {found[:12]}; restore them, or begin this run again: {REMEDY}"
        )
    return True


def shown(several: Mapping[str, str] | None) -> str:
    return ", ".join(f"{share} x {run}" for run, share in (several or {}).items()) or "none"
