"""Runs that a run begins from or learns from: that of `init`, and the teachers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from common.errors import SettingsError
from common.files import digest
from multitask.run_folder import RunFolder
from multitask.settings.config import RunConfig
from multitask.teachers import teachers_by_task
from tasks.own_task import own_tasks_of

# Keys of an own task that decide which rows of its file are dev and test.
SPLIT_BY = ("dev", "test", "text", "group", "quotes")


def source_runs(config: RunConfig) -> dict[str, Path]:
    """Return the folders of `init` and of the teachers by flag; members stand for an ensemble."""
    start = [] if config.init is None else [Path(config.init)]
    teachers = {run for several in teachers_by_task(config).values() for run in several}
    return {f"--init {run}": run for run in start} | {
        f"--teacher {run}": run for run in sorted(teachers)
    }


def check_encoder_of_init(config: RunConfig) -> None:
    """Raise SettingsError if the run in `init` has another encoder."""
    if config.init is None:
        return
    if config.encoder != (brought := RunFolder(Path(config.init)).settings()["encoder"]):
        line = f"expected {brought}, the encoder of init, found {config.encoder}"
        raise SettingsError(f"encoder: {line}")


def tasks_with_seen_rows(config: RunConfig) -> list[str]:
    """Return the own tasks of whose dev or test rows the run `init`, or one before it, may know.

    It was trained on their file of dev or test, or on another part of the same file.
    """
    found = []
    for name, now in config.own_tasks.items():
        for run in runs_before(config):
            stored_tasks = own_tasks_of(run.settings_if_any().get("own_tasks", {}))
            for other, before in stored_tasks.items():
                file = before.train
                stored = run.data().get(f"{other} train")
                seen = file in (now.dev, now.test)
                if now.dev is None and file == now.train:
                    changed = Path(file).is_file() and digest(Path(file)) != stored
                    seen |= changed or any(getattr(now, k) != getattr(before, k) for k in SPLIT_BY)
                if seen and name not in found:
                    found.append(name)
    return found


def runs_before(config: RunConfig) -> Iterator[RunFolder]:
    """Yield the run `init`, the one from which it began, and so on."""
    found, start = [], config.init
    while start and start not in found:
        found.append(start)
        yield (run := RunFolder(Path(start)))
        start = run.settings_if_any().get("init")
