"""The runs that teach each task of a run, and how much the scores of each count."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from common.errors import RunError, SettingsError
from multitask.run_folder import RunFolder
from multitask.settings.config import RunConfig

Shares = dict[Path, Fraction]  # runs, and how much their scores count


def teachers_by_task(config: RunConfig) -> dict[str, Shares]:
    """Return the runs that teach each task; each teacher counts once.

    Those are the tasks in the weights of a regulariser that learns from a teacher. An ensemble
    stands for its members. Raise SettingsError for a teacher of none of the tasks.
    """
    learning = [one for one in config.regularizers if one.learns_from_teacher]
    weighted = {task for one in learning for task in one.by_task(config.tasks)}
    found: dict[str, Shares] = {name: {} for name in config.tasks if name in weighted}
    for folder in map(Path, config.teacher):
        teaches = False
        for name, several in found.items():
            for run, share in shares_of(folder, name).items():
                several[run] = several.get(run, Fraction(0)) + share
                teaches = True
        if not teaches:
            raise SettingsError(f"teacher: expected a run of {', '.join(found)}, found {folder}")
    return found


def shares_of(folder: Path, task: str) -> Shares:
    """Return the runs that a teacher of a task stands for, whose shares add up to 1.

    A run without the task has none. Raise RunError for an export, and for an ensemble whose members
    are not there.
    """
    run = RunFolder(folder)
    if run.exported:
        raise RunError(f"{folder}: expected the folder of a run, found an export")
    stored = run.settings()
    if stored["mode"] != "ensemble":
        return {folder: Fraction(1)} if task in stored["tasks"] else {}
    members = [member_folder(folder, one) for one in stored["members"].get(task, ())]
    merged = (run.metrics() or {}).get("members", {}).get(task)
    counts = None
    if merged is not None:  # of chosen members; all have dev metrics
        counts = {**dict.fromkeys(merged.get("dev", ()), 0), **merged["weights"]}
    found: Shares = {}
    for member in members:
        count = 1 if counts is None else count_of(member, counts)
        for one, share in shares_of(member, task).items() if count else ():
            found[one] = found.get(one, Fraction(0)) + count * share
    total = sum(found.values())
    return {one: share / total for one, share in found.items()}


def count_of(member: Path, counts: Mapping[str, int]) -> int:
    """Return how often a member counts: by the name of its folder, or else the end of its path.

    The longest of several that fit counts.
    """
    place, by_length = member.resolve().parts, {0: 0}
    for name, count in counts.items():
        end = tuple(part for part in Path(name).parts if part != "..")
        if place[-len(end) :] == end:
            by_length[len(end)] = count
    return by_length[max(by_length)]


def member_folder(ensemble: Path, member: str) -> Path:
    """Return the folder of a member, whose path is relative to that of the ensemble, or absolute.

    Raise RunError for a member that is not there.
    """
    found = ensemble / member
    if not found.is_dir():
        raise RunError(f"{ensemble}: expected the folder of its member {member}, found none")
    return found
