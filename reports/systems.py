"""Systems: the runs of one method, over tasks and seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import UserError
from multitask.runs import Run, in_words, other_than_defaults
from reports.tables import shown
from tasks import in_order

# Settings in which the runs of one system may differ. Single-task runs of several tasks and seeds
# form a system, as do multi-task runs of several seeds.
VARYING = ("tasks", "seed", "init", "members", "device")
NO_SEED = -1  # for merged runs whose members were not selected by a seed


@dataclass(frozen=True)
class System:
    """Runs of one training method; `cells` are the runs by task and seed."""

    name: str
    runs: tuple[Run, ...]
    cells: Mapping[tuple[str, int], Run]

    @property
    def tasks(self) -> tuple[str, ...]:
        return in_order(task for task, _ in self.cells)


def group_runs(runs: Sequence[tuple[str | None, Run]]) -> list[System]:
    """Group runs, each with the name of its system or None, into systems in their order.

    Runs without a name form a system if they differ only in the settings `VARYING`. Raises
    UserError for an unfinished run, for runs of a system without a name that differ in their data,
    and for two runs of the same task and seed.
    """
    found: dict[str, list[Run]] = {}
    every = [set(settings_of(run)) for _, run in runs]
    common = set.intersection(*every) if len(every) > 1 else set()
    for name, run in runs:
        if not run.metrics:
            raise UserError(f"{run.folder}: the run is not finished; continue it with --resume")
        mode = run.settings["mode"]
        if mode == "pretrain":
            line = "compare runs that start from it with --init"
            raise UserError(f"{run.folder}: a run of mode pretrain has no tasks; {line}")
        title = name or ", ".join([mode, *(one for one in settings_of(run) if one not in common)])
        others = found.setdefault(title, [])
        for other in others if name is None else ():
            for task in {*run.tasks} & {*other.tasks}:
                if data_of(run, task) != data_of(other, task):
                    line = f"its data, options or tasks beside {task} differ from {other.folder}"
                    raise UserError(f"{run.folder}: {line}; name each system with NAME=RUN")
        others.append(run)
    return [make_system(name, tuple(several)) for name, several in found.items()]


def settings_of(run: Run, always: Sequence[str] = ()) -> list[str]:
    """Return the settings of a run that are no defaults, without `VARYING`, and those of `always`.

    The run from which it starts is there with its own settings.
    """
    found, start = [], run.settings.get("init")
    if start is not None:
        known = (Path(start) / "config.json").exists()
        before = [Run(start).settings["mode"], *settings_of(Run(start))] if known else []
        found.append(f"after {', '.join(before) or Path(start).name}")
    words = in_words(run.settings).items()
    shown_always = {k: v for k, v in words if k.split()[0] in always and v is not None}
    for key, value in {**shown_always, **other_than_defaults(run.settings)}.items():
        if isinstance(value, dict) and key.endswith(" weight"):
            found.append(f"{key} {' '.join(sorted({f'{one:g}' for one in value.values()}))}")
        elif key not in VARYING:
            found.append(f"{key.replace('_', ' ')} {shown(value)}")
    return found


def data_of(run: Run, task: str) -> list[Any]:
    """Return what the runs of a task in one system have in common."""
    options = {k: v for k, v in run.tasks[task].items() if k not in ("name", "test_labels")}
    beside = sorted(run.tasks) if run.settings["mode"] == "multitask" else []
    checksum = run.read("data.json").get(f"{task} train")  # dev is compared by its ids or checksum
    return [run.settings.get("data"), options, beside, checksum]


def make_system(name: str, runs: tuple[Run, ...]) -> System:
    cells: dict[tuple[str, int], Run] = {}
    for run in runs:
        for task in run.tasks:
            cell = task, seed_of(run)
            if cell in cells:
                raise UserError(
                    f"{run.folder} and {cells[cell].folder} are both runs of {task} with seed "
                    f"{cell[1]} in the system {name}; name each system with NAME=RUN"
                )
            cells[cell] = run
    return System(name, runs, cells)


def seed_of(run: Run) -> int:
    """Return the seed of a run, or `NO_SEED` for a merge without random selection."""
    if run.settings.get("members") and run.settings.get("method") != "greedy":
        return NO_SEED
    return int(run.settings.get("seed", 0))
