"""Runs that a run begins from or learns from: that of `init`, and the teachers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.errors import RunError, SettingsError, UserError
from common.files import digest
from multitask.run_folder import RunFolder
from multitask.settings.config import RunConfig
from multitask.teachers import teachers_by_task
from tasks.own_types.base import TaskDescription
from tasks.task_description import from_json


def source_runs(config: RunConfig) -> dict[str, Path]:
    """Return the folders of `init` and of the teachers by flag; members stand for an ensemble."""
    start = [] if config.init is None else [Path(config.init)]
    teachers = {run for several in teachers_by_task(config).values() for run in several}
    return {f"--init {run}": run for run in start} | {
        f"--teacher {run}": run for run in sorted(teachers)
    }


def check_encoder_of_init(config: RunConfig) -> None:
    """Raise SettingsError if the run in `init` has another encoder."""
    if config.init and config.encoder != (brought := RunFolder(Path(config.init)).encoder()):
        line = f"expected {brought}, the encoder of init, found {config.encoder}"
        raise SettingsError(f"encoder: {line}")


def check_source_weights(config: RunConfig) -> None:
    """Raise RunError if a run of `init` or `teacher` is missing or has no weights.

    Raise SettingsError for a teacher of none of the tasks.
    """
    for run in source_runs(config).values():
        RunFolder(run).weights()


def tasks_with_seen_rows(config: RunConfig) -> list[str]:
    """Return the own tasks of whose dev or test rows the run `init`, or one before it, may know.

    Raise RunError for tasks of these runs that cannot be read.
    """
    own = {name: from_json(name, content) for name, content in config.own_tasks.items()}
    before = list(tasks_before(config))
    # Of each file once, which several tasks may share.
    files = {one.train for one in own.values()} if before else ()
    found = {file: digest(Path(file)) for file in files if Path(file).is_file()}
    return [
        name
        for name, one in own.items()
        if any(may_have_seen(other, stored, one, found.get(one.train)) for other, stored in before)
    ]


def tasks_before(config: RunConfig) -> Iterator[tuple[TaskDescription, str | None]]:
    """Yield the own tasks of the run `init` and of those before it.

    The checksum of the training file when the run began is beside each, None if it is not stored.
    """
    runs, run = list[Path](), config.init
    while run and Path(run) not in runs:
        runs.append(Path(run))
        folder = RunFolder(Path(run))
        stored, checksums = folder.settings_if_any() or {}, folder.data()
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
