"""The runs that teach each task of a run, and how much the scores of each count."""

from __future__ import annotations

from pathlib import Path

from common.errors import RunError, SettingsError
from multitask.run_folder import RunFolder
from multitask.settings.config import RunConfig

Shares = dict[Path, float]  # runs, and how much their scores count


def teachers_by_task(config: RunConfig) -> dict[str, Shares]:
    """Return the runs that teach each task; each teacher counts once.

    Those are the tasks in the weights of a regulariser that learns from a teacher. An ensemble
    stands for its members. Raise SettingsError for a teacher of none of the tasks.
    """
    learning = [one for one in config.regularizers if one.learns_from_teacher]
    weighted = {task for one in learning for task in one.by_task(config.tasks)}
    found: dict[str, Shares] = {name: {} for name in config.tasks if name in weighted}
    for folder in map(Path, config.teacher):
        by_task = {name: shares_of(folder, name) for name in found}
        if not any(by_task.values()):
            raise SettingsError(f"teacher: {folder} is not a run of {', '.join(found)}")
        for name, several in by_task.items():
            for run, share in several.items():
                found[name][run] = found[name].get(run, 0) + share
    return found


def shares_of(folder: Path, task: str) -> Shares:
    """Return the runs that a teacher of a task stands for, whose shares add up to 1.

    A run without the task has none. Raise RunError for a folder without a run.
    """
    run = RunFolder(folder)
    if run.exported or not (stored := run.read("config.json")):
        raise RunError(f"{folder}: expected the folder of a run or of an ensemble")
    if stored["mode"] != "ensemble":
        return {folder: 1.0} if task in stored["tasks"] else {}
    members = [folder / one for one in stored["members"].get(task, ())]
    merged = (run.metrics() or {}).get("members", {}).get(task, {})
    counts = merged.get("counts", [1] * len(members))
    found: Shares = {}
    for member, count in zip(members, counts, strict=True):
        for one, share in shares_of(member, task).items() if count else ():
            found[one] = found.get(one, 0) + share * count / sum(counts)
    return found
