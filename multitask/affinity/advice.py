"""Runs to try: groups of tasks by their estimated gains, each with its settings.

What is advised and why is stored beside the settings of the runs, so that `compare --advice` can
hold the promises against the results. No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.errors import RunError
from common.json_files import write_json, write_sealed
from multitask.affinity.result import Affinity, Promise
from multitask.affinity.run import ADVICE, ADVISED, RATE, RUN, joint_config
from multitask.branching import affordable, described, start_cosines
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.run_folder import RunFolder
from tasks import data_folder

SINGLES, ONE_MODEL, GROUPS, BRANCHES = "singles", "one model", "groups", "branches"
EQUAL = 1.1  # ratio of sizes up to which tasks count as equally large
PARTS = ("limit", "dev_limit", "test_limit")  # settings of the short joint run only
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class AdvisedRun:
    """A run to train: its name, its configuration, and its estimated seconds of training."""

    name: str
    config: RunConfig
    seconds: float

    def settings_file(self, root: Path) -> Path:
        """Return the file of the run's settings, below the folder of the advice."""
        return root / ADVICE / f"{self.name}.json"

    def folder(self, root: Path, seed: int) -> Path:
        """Return the folder of the run with this seed, below that of the advice."""
        return run_folder(root, self.name, seed)


def run_folder(root: Path, name: str, seed: int) -> Path:
    """Return the folder of an advised run of this name and seed, below that of the advice."""
    return root / ADVISED / f"{name}-seed{seed}"


@dataclass(frozen=True)
class AdvisedSystem:
    """Runs that serve each task once. `promises` are the estimated gains over `singles`, by task.

    They are empty where nothing estimates them: for `singles` itself, and for branches.
    """

    name: str
    runs: tuple[AdvisedRun, ...]
    promises: Mapping[str, Promise]

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.runs)


@dataclass(frozen=True)
class Choice:
    """A setting of the runs of some tasks, with its reason."""

    tasks: tuple[str, ...]
    setting: str
    value: str
    reason: str


@dataclass(frozen=True)
class Advice:
    """Systems to train and compare, the first of them one model per task; `best` is the advised.

    Promises are gains by `estimator`. The runs of each of `seeds` form a comparison.
    """

    estimator: str
    systems: tuple[AdvisedSystem, ...]
    best: str
    choices: tuple[Choice, ...]
    seeds: tuple[int, ...]

    @property
    def runs(self) -> list[AdvisedRun]:
        """All runs, each once: systems may share them."""
        found = {run.name: run for system in self.systems for run in system.runs}
        return list(found.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "estimator": self.estimator,
            "best": self.best,
            "seeds": list(self.seeds),
            "choices": [vars(one) | {"tasks": list(one.tasks)} for one in self.choices],
            "systems": [
                {
                    "name": system.name,
                    "runs": [run.name for run in system.runs],
                    "promises": {task: vars(one) for task, one in system.promises.items()},
                }
                for system in self.systems
            ],
            "seconds": {run.name: round(run.seconds, 1) for run in self.runs},
        }


def advise(
    found: Affinity,
    config: RunConfig,
    folder: str | Path,
    seeds: Sequence[int] = (1, 2, 3),
    rates: Sequence[float] = (),
    control: RunControl = RunControl(),
) -> Advice:
    """Propose runs on all data, and store them in the folder of a measurement.

    Each group of tasks has the sampler that suits the sizes of its tasks, PCGrad if gradients of
    two of them are in conflict (a cosine whose interval is below 0), and branches in the layers in
    which they conflict. The learning rate is that of `config`, or the best of `rates`.

    Args:
        found: the result of `measure_affinity`.
        config: its configuration; `limit`, `dev_limit` and `test_limit` are left out.
        folder: its folder, to which `advice.json` and the settings of the runs, `advice/NAME.json`,
            are written.
        seeds: seeds of the runs.
        rates: learning rates that are tried in joint runs like the measured one, `rate-R`, whose
            dev is a tenth of the training examples (that of the files for a task with a labelled
            test).
        control: options of these joint runs.

    Returns:
        The systems to train, the reasons of their settings, and what was promised.

    Raises:
        RunError: for a folder without the joint run.
    """
    folder = Path(folder)
    joint = folder / f"{RUN}{found.seeds[0]}"
    metrics = RunFolder(joint).metrics()
    if metrics is None:
        raise RunError(f"{joint}: expected the joint run of the measurement, found none")
    chosen = [best_rate(config, folder, rates, control)] if rates else []
    every = whole(config).changed(**{one.setting: float(one.value) for one in chosen})
    speed = metrics["examples_per_second"]
    advice = Maker(found, every, training_sizes(every), speed, joint).advice(tuple(seeds))
    advice = replace(advice, choices=(*chosen, *advice.choices))
    (folder / ADVICE).mkdir(exist_ok=True)
    for run in advice.runs:
        write_json(run.settings_file(folder), run.config.to_json())
    write_sealed(folder / f"{ADVICE}.json", advice.to_json())
    return advice


def best_rate(
    config: RunConfig, folder: Path, rates: Sequence[float], control: RunControl
) -> Choice:
    """Return the rate with the highest dev score after a short joint run with each.

    Finished runs are kept, and an unfinished one is continued.
    """
    from multitask.assembly import plain_tasks
    from multitask.evaluation import selection_score
    from multitask.run import complete

    held_out = joint_config(config).changed(protocol="held-out", dev_limit=None)
    scores, control = dict[float, float](), replace(control, resume=not control.overwrite)
    for rate in dict.fromkeys(rates):
        one = held_out.changed(lr=rate, head_lr=rate)
        metrics = complete(one, folder / f"{RATE}{rate:g}", control)
        dev = {task: metrics["dev"][task] for task in config.main_tasks}
        scores[rate] = selection_score(dev, plain_tasks(one))
    best = max(scores, key=lambda rate: scores[rate])
    shown = ", ".join(f"{score:.3f} with {rate:g}" for rate, score in scores.items())
    return Choice(config.tasks, "lr", f"{best:g}", f"mean score of short joint runs: {shown}")


def whole(config: RunConfig) -> RunConfig:
    """Return the configuration with all data."""
    given = {key: value for key, value in config.given.items() if key not in PARTS}
    return RunConfig.from_flat(given, config.user_methods)


def training_sizes(config: RunConfig) -> dict[str, int]:
    """Return the number of training examples of each task."""
    from multitask.assembly import plain_tasks

    data = data_folder(config.data)
    return {name: len(task.read(data, "train").ids) for name, task in plain_tasks(config).items()}


@dataclass(frozen=True)
class Maker:
    """What the advice follows from: estimates, a configuration of all tasks, and the joint run."""

    found: Affinity
    config: RunConfig
    sizes: Sizes
    speed: float  # training examples per second of the joint run
    joint: Path

    def advice(self, seeds: tuple[int, ...]) -> Advice:
        names, choices = self.found.tasks, list[Choice]()
        singles = tuple(self.run((task,), (task,)) for task in names)
        systems = [AdvisedSystem(SINGLES, singles, {})]
        best = self.found.chosen.best
        groups = [
            (tuple(names[t] for t in one.tasks), tuple(names[t] for t in one.serves))
            for one in best.groups
        ]
        every = [(names, names)]
        for name, several in ((ONE_MODEL, every), (GROUPS, groups)):
            if name == GROUPS and (several == every or len(several) == len(names)):
                continue
            runs = tuple(self.run(*one) for one in several)
            promises = {t: p for one in several for t, p in self.promises(*one).items()}
            systems.append(AdvisedSystem(name, runs, promises))
        chosen = SINGLES if len(groups) == len(names) else systems[-1].name
        for tasks, _ in every if chosen == SINGLES else groups:
            choices += self.choices(tasks)
        if chosen != SINGLES and (branched := self.branched(groups, choices)):
            systems.append(AdvisedSystem(BRANCHES, branched, {}))
        return Advice(self.found.estimator, tuple(systems), chosen, tuple(choices), seeds)

    def run(self, tasks: tuple[str, ...], serves: tuple[str, ...]) -> AdvisedRun:
        """Return the run that trains `tasks`; those that it does not serve are auxiliary."""
        config = for_tasks(self.config, tasks)
        if len(tasks) > 1:
            chosen = {one.setting: one.value for one in self.choices(tasks)}
            free = {key: value for key, value in chosen.items() if key not in config.given}
            auxiliary = tuple(task for task in tasks if task not in serves)
            config = config.changed(**free, **({"auxiliary": auxiliary} if auxiliary else {}))
        name = "+".join(tasks) + ("" if tasks == serves else "-for-" + "+".join(serves))
        examples = config.epochs * sum(self.sizes[task] for task in tasks)
        return AdvisedRun(name, config, examples / self.speed)

    def promises(self, tasks: tuple[str, ...], serves: tuple[str, ...]) -> dict[str, Promise]:
        """Return the estimated gains of the served tasks; a task alone has none."""
        if len(tasks) == 1:
            return {}
        gains = self.found.gains(*tasks)
        ends = self.found.chosen.interval(tuple(map(self.found.tasks.index, tasks)))
        several = zip(tasks, ends.T.tolist(), strict=True)
        return {
            task: Promise(gains[task], low, high, self.found.estimator)
            for task, (low, high) in several
            if task in serves
        }

    def choices(self, tasks: tuple[str, ...]) -> Iterator[Choice]:
        """Yield sampler, schedule and combiner of several tasks, with reasons."""
        if len(tasks) < 2:
            return
        largest, smallest = (one(tasks, key=self.sizes.__getitem__) for one in (max, min))
        ratio = self.sizes[largest] / self.sizes[smallest]
        equal, (cosine, low, high, pair) = ratio <= EQUAL, self.lowest_cosine(tasks)
        sizes = f"{largest} has {ratio:.2f} times the training examples of {smallest}"
        found = f"lowest mean cosine {cosine:+.3f} ({low:+.3f} to {high:+.3f}), of {pair}"
        yield Choice(tasks, "sampling", "round-robin" if equal else "annealed", sizes)
        if high < 0:
            yield Choice(tasks, "schedule", "joint", "gradients of one step are combined")
            yield Choice(tasks, "combiner", "pcgrad", f"gradients are in conflict: {found}")
        else:
            alone = "joint" if equal else "individual"
            reason = "each task in every step" if equal else "no gradients to combine"
            yield Choice(tasks, "schedule", alone, reason)
            yield Choice(tasks, "combiner", "sum", f"no clear conflict: {found}")

    def lowest_cosine(self, tasks: tuple[str, ...]) -> tuple[float, float, float, str]:
        """Return the lowest mean cosine of gradients of two tasks, its interval, and their names.

        It is the one with the lowest upper end.
        """
        gram = self.found.estimates["gram"]
        places = [self.found.tasks.index(task) for task in tasks]
        pairs = [(i, j) for i in places for j in places if i < j]
        i, j = min(pairs, key=lambda pair: float(gram.ends[1][pair]))
        low, high = (float(end[i, j]) for end in gram.ends)
        names = f"{self.found.tasks[i]} and {self.found.tasks[j]}"
        return float(gram.pairs[i, j]), low, high, names

    def branched(
        self, groups: Sequence[tuple[tuple[str, ...], tuple[str, ...]]], choices: list[Choice]
    ) -> tuple[AdvisedRun, ...]:
        """Return the runs of the groups with branches, empty if no layer conflicts.

        Branches start from the joint run. Their reasons are added to `choices`.
        """
        runs, conflicts = list[AdvisedRun](), False
        for tasks, serves in groups:
            run = self.run(tasks, serves)
            if len(tasks) > 1:
                start = run.config.changed(init=str(self.joint), adapter="copies")
                if layers := affordable(start, start_cosines(start)):
                    conflicts = True
                    numbers = tuple(sorted(one.layer for one in layers))
                    config = start.changed(adapter_layers=numbers)
                    run = replace(run, name=f"{run.name}-branches", config=config)
                    reason = "; ".join(f"layer {one.layer} {described(one)}" for one in layers)
                    value = " ".join(map(str, numbers))
                    choices.append(Choice(tasks, "branch", value, f"mean cosine: {reason}"))
            runs.append(run)
        return tuple(runs) if conflicts else ()


def for_tasks(config: RunConfig, tasks: tuple[str, ...]) -> RunConfig:
    """Return the configuration for some of its tasks, without settings of the others."""
    given: dict[str, Any] = {}
    for key, value in config.given.items():
        if isinstance(value, Mapping) and value and value.keys() <= set(config.tasks):
            value = {task: one for task, one in value.items() if task in tasks}
            if not value:
                continue
        given[key] = value
    mode = "multitask" if len(tasks) > 1 else "single"
    given |= {"mode": mode, "tasks": tasks}
    return RunConfig.from_flat(given, config.user_methods)
