"""Tables of advised runs, and the runs and promises of a stored advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common.errors import UserError
from common.json_files import read_json, read_sealed, seal_of
from multitask.affinity.advice import COMMANDS, OF_THE_RUN, Advice, run_folder
from multitask.affinity.result import Promise, sign_of
from multitask.affinity.run import ADVICE
from multitask.settings.config import difference
from multitask.storage.run_folder import RunFolder
from reports.affinity import shown_gain, with_unit
from reports.comparison import Comparison
from reports.tables import Section, Table

OUTCOMES = {1: "kept", -1: "broken", 0: "not settled"}  # by the product of both signs


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
    promised = f"gains over singles by {with_unit(advice.estimator)}"
    return ["system", "runs", promised, "minutes"], rows


@dataclass(frozen=True)
class Promises:
    """Gains over the first system that were estimated before the runs, by system and task.

    `settings` are the checksums of the advised settings, by run.
    """

    estimator: str
    gains: Mapping[tuple[str, str], Promise]
    settings: Mapping[str, str]

    def text(self, promise: Promise) -> str:
        """Format a promise: `+0.012 (+0.003 to +0.020)`."""
        values = (promise.gain, promise.low, promise.high)
        gain, low, high = (shown_gain(value, self.estimator) for value in values)
        return f"{gain} ({low} to {high})"


def read_advice(file: Path) -> tuple[list[tuple[str, Path]], Promises]:
    """Return the finished runs of a stored advice, each with its system, and the promises.

    Raise UserError for another file, for a run with other settings than the advised ones, or if no
    run of the first system or none of another one is finished.
    """
    if not file.is_file():
        raise UserError(f"{file}: expected advice.json of mode affinity --advise, found no file")
    content = read_sealed(file, UserError, "--mode affinity --advise writes it again")
    try:
        systems = {one["name"]: one for one in content["systems"]}
        named = [
            (name, run_folder(file.parent, run, int(seed)))
            for name, one in systems.items()
            for run in one["runs"]
            for seed in content["seeds"]
        ]
        gains = {
            (name, task): Promise(**gain)
            for name, one in systems.items()
            for task, gain in one["promises"].items()
        }
        promises = Promises(content["estimator"], gains, {**content.get("settings", {})})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{file}: expected an advice of mode affinity, found other keys") from error
    finished = [(name, folder) for name, folder in named if RunFolder(folder).metrics() is not None]
    for _, folder in finished:
        check_settings(folder, file.parent, promises)
    there, first = {name for name, _ in finished}, next(iter(systems), "")
    if first not in there or len(there) < 2:
        found = ", ".join(sorted(there)) or "none"
        expected = f"expected finished runs of {first} and of another system"
        script = f"{ADVICE}/{COMMANDS} trains them"
        raise UserError(f"{file.parent}: {expected}, found {found}; {script}")
    return finished, promises


def check_settings(folder: Path, root: Path, promises: Promises) -> None:
    """Raise UserError if a run has other settings than those that were advised for it."""
    stored, name = RunFolder(folder).settings(), folder.name.rpartition("-seed")[0]
    file = root / ADVICE / f"{name}.json"
    advised = read_json(file, UserError)
    if promises.settings.get(name) != seal_of(advised):
        raise UserError(
            f"{file}: expected the advised settings, found others; --advise writes them"
        )
    if found := difference(advised, stored, OF_THE_RUN):
        raise UserError(f"{folder}: expected the settings of {file}, found another: {found}")


def promise_section(comparison: Comparison, promises: Promises) -> Section:
    """Return the table of promised and real gains.

    A promise is kept or broken if both intervals exclude 0.
    """
    rows = []
    for one in comparison.differences:
        promise = promises.gains.get((one.system, one.task))
        if promise is not None:
            low, high = (100 * end for end in one.interval)
            real = f"{100 * one.difference:+.1f} ({low:+.1f} to {high:+.1f})"
            outcome = OUTCOMES[sign_of(low, high) * promise.sign]
            rows.append([one.system, one.task, promises.text(promise), real, outcome])
    promised = f"promised by {with_unit(promises.estimator)}"
    header = ["system", "task", promised, "real, in points", "outcome"]
    return Section("Promised and real gains", (header, rows), numbers=False)
