"""Tables of advised runs, and the runs and promises of a stored advice."""

from __future__ import annotations

from pathlib import Path

from common.errors import UserError
from common.json_files import read_sealed
from multitask.affinity.advice import Advice, run_folder
from multitask.affinity.result import Promise
from multitask.run_folder import RunFolder
from reports.affinity_figures import shown_gain
from reports.tables import Table

EFFECTS = {1: "helps", -1: "hurts", 0: "no clear effect"}


def choice_table(advice: Advice) -> Table:
    """Return the table of the advised settings, with their reasons."""
    rows = [[" + ".join(c.tasks), c.setting, c.value, c.reason] for c in advice.choices]
    return ["tasks", "setting", "value", "reason"], rows


def system_table(advice: Advice) -> Table:
    """Return the table of the systems: their runs, promised gains, and minutes of a seed."""
    rows = []
    for system in advice.systems:
        gains = [
            f"{task} {shown_gain(one.gain, advice.estimator)}{'' if one.sign else ' (unclear)'}"
            for task, one in system.promises.items()
        ]
        runs = "; ".join(run.name for run in system.runs)
        rows.append([system.name, runs, ", ".join(gains), f"{system.seconds / 60:.0f}"])
    return ["system", "runs", f"gains over singles by {advice.estimator}", "minutes"], rows


def read_advice(
    file: Path,
) -> tuple[list[tuple[str, Path]], dict[tuple[str, str], Promise]]:
    """Return the finished runs of a stored advice, each with its system, and the promises.

    Promises are by system and task. Raise UserError for another file, or without a finished run of
    the first system and of another one.
    """
    content = read_sealed(file, UserError, "--mode affinity --advise writes it again")
    try:
        systems = {one["name"]: one for one in content["systems"]}
        named = [
            (name, run_folder(file.parent, run, int(seed)))
            for name, one in systems.items()
            for run in one["runs"]
            for seed in content["seeds"]
        ]
        promises = {
            (name, task): Promise(**gain)
            for name, one in systems.items()
            for task, gain in one["promises"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{file}: expected an advice of mode affinity, found other keys") from error
    finished = [(name, folder) for name, folder in named if RunFolder(folder).metrics() is not None]
    there, first = {name for name, _ in finished}, next(iter(systems), "")
    if first not in there or len(there) < 2:
        found = ", ".join(sorted(there)) or "none"
        expected = f"expected finished runs of {first} and of another system"
        raise UserError(f"{file.parent}: {expected}, found {found}")
    return finished, promises
