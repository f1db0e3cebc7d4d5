"""The rules of the advice: which groups of tasks to train, with which settings, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from multitask.affinity.advice import Advice, AdvisedRun, AdvisedSystem, Choice
from multitask.affinity.result import Affinity, Promise
from multitask.branching import affordable, described, start_cosines
from multitask.config import RunConfig
from multitask.settings_by_name import METHODS, of_methods

SINGLES, ONE_MODEL, GROUPS, BRANCHES = "singles", "one model", "groups", "branches"
EQUAL_SIZES = 1.1  # ratio of the largest to the smallest task, up to which they count as equal
SHORT_RUN_LIMITS = ("limit", "dev_limit", "test_limit")
CHOSEN = (  # settings of the proposed runs
    *("sampling", "schedule", "combiner", "batches_per_step", "steps_per_epoch"),
    *("adapter", "auxiliary"),
)
Names = tuple[str, ...]
Served = tuple[Names, Names]  # tasks of a run, and those of them that it serves


@dataclass(frozen=True)
class Proposals:
    """What the advice follows from.

    `config` is a configuration of all tasks on all data, `sizes` are their training examples,
    `speed` is that of the `joint` run in training examples per second.
    """

    found: Affinity
    config: RunConfig
    sizes: Mapping[str, int]
    speed: float
    joint: Path

    def advice(self, seeds: tuple[int, ...]) -> Advice:
        """Return the systems to compare, with the advised one among them."""
        groups = self.best_groups()
        every = [(self.found.tasks, self.found.tasks)]
        apart = all(len(tasks) == 1 for tasks, _ in groups)
        systems = [
            self.system(SINGLES, [((task,), (task,)) for task in self.found.tasks]),
            self.system(ONE_MODEL, every),
        ]
        if not apart and groups != every:
            systems.append(self.system(GROUPS, groups))
        best = SINGLES if apart else systems[-1].name
        chosen = every if apart else groups
        choices = [choice for tasks, _ in chosen for choice in self.choices(tasks)]
        branches = [] if apart else self.branches(groups)
        if any(branches):
            pairs = zip(groups, branches, strict=True)
            runs = tuple(self.branched_run(*served, branch) for served, branch in pairs)
            systems.append(AdvisedSystem(BRANCHES, runs, {}))
        choices += [branch for branch in branches if branch]
        return Advice(self.found.estimator, tuple(systems), best, tuple(choices), seeds)

    def best_groups(self) -> list[Served]:
        """Return the groups with the largest estimated gain."""
        groups = self.found.chosen.best.groups
        return [(self.names(one.tasks), self.names(one.serves)) for one in groups]

    def names(self, tasks: Sequence[int]) -> Names:
        return tuple(self.found.tasks[task] for task in tasks)

    def system(self, name: str, groups: Sequence[Served]) -> AdvisedSystem:
        """Return the system with one run per group, and the promised gains."""
        promises = {t: p for one in groups for t, p in self.promises(*one).items()}
        return AdvisedSystem(name, tuple(self.run(*one) for one in groups), promises)

    def run(self, tasks: Names, serves: Names) -> AdvisedRun:
        """Return the run that trains `tasks`; those that it does not serve are auxiliary."""
        settings: dict[str, Any] = {one.setting: one.value for one in self.choices(tasks)}
        if tasks != serves:
            settings["auxiliary"] = tuple(task for task in tasks if task not in serves)
        config = for_tasks(self.config, tasks, settings)
        name = "+".join(tasks) + ("" if tasks == serves else "-for-" + "+".join(serves))
        examples = config.epochs * sum(self.sizes[task] for task in tasks)
        return AdvisedRun(name, config, examples / self.speed)

    def promises(self, tasks: Names, serves: Names) -> dict[str, Promise]:
        """Return the estimated gains of the served tasks; a task alone has none."""
        if len(tasks) == 1:
            return {}
        gains = self.found.gains(*tasks)
        ends = self.found.chosen.interval(tuple(map(self.found.tasks.index, tasks)))
        intervals = dict(zip(tasks, ends.T.tolist(), strict=True))
        return {task: Promise(gains[task], *intervals[task]) for task in serves}

    def choices(self, tasks: Names) -> Iterator[Choice]:
        """Yield sampler, schedule and combiner of several tasks, with reasons."""
        if len(tasks) < 2:
            return
        largest, smallest = (one(tasks, key=self.sizes.__getitem__) for one in (max, min))
        ratio = self.sizes[largest] / self.sizes[smallest]
        equal, (conflict, cosine) = ratio <= EQUAL_SIZES, self.clearest_conflict(tasks)
        sizes = f"{largest} has {ratio:.2f} times the training examples of {smallest}"
        yield Choice(tasks, "sampling", "round-robin" if equal else "annealed", sizes)
        if conflict:
            yield Choice(tasks, "schedule", "joint", "gradients of one step are combined")
            yield Choice(tasks, "combiner", "pcgrad", f"gradients are in conflict: {cosine}")
        else:
            one_task = "no gradients to combine"
            each = "each task in every step"
            schedule = ("joint", each) if equal else ("individual", one_task)
            yield Choice(tasks, "schedule", *schedule)
            yield Choice(tasks, "combiner", "sum", f"no clear conflict: {cosine}")

    def clearest_conflict(self, tasks: Names) -> tuple[bool, str]:
        """Return whether two tasks have gradients in conflict, and their cosine as text.

        The pair is the one whose interval of the mean cosine has the lowest upper end.
        """
        gram = self.found.estimates["gram"]
        places = [self.found.tasks.index(task) for task in tasks]
        pairs = [(i, j) for i in places for j in places if i < j]
        pair = min(pairs, key=lambda pair: float(gram.ends[1][pair]))
        low, high = (float(end[pair]) for end in gram.ends)
        text = f"mean cosine {gram.pairs[pair]:+.3f} ({low:+.3f} to {high:+.3f})"
        return high < 0, f"{text} of {' and '.join(self.names(pair))}"

    def branches(self, groups: Sequence[Served]) -> list[Choice | None]:
        """Return the layers of each group in which its tasks conflict, None without any."""
        found: list[Choice | None] = []
        for tasks, serves in groups:
            chosen = None
            if len(tasks) > 1:
                start = self.run(tasks, serves).config.changed(**self.start)
                if layers := affordable(start, start_cosines(start)):
                    value = " ".join(sorted(str(one.layer) for one in layers))
                    each = "; ".join(f"layer {one.layer} {described(one)}" for one in layers)
                    chosen = Choice(tasks, "branch", value, f"mean cosine: {each}")
            found.append(chosen)
        return found

    @property
    def start(self) -> dict[str, Any]:
        """Settings of branches, which start from the joint run."""
        return {"init": str(self.joint), "adapter": "copies"}

    def branched_run(self, tasks: Names, serves: Names, branch: Choice | None) -> AdvisedRun:
        """Return the run of a group with branches in these layers."""
        run = self.run(tasks, serves)
        if branch is None:
            return run
        layers = tuple(map(int, branch.value.split()))
        config = run.config.changed(**self.start, adapter_layers=layers)
        return replace(run, name=f"{run.name}-branches", config=config)


def on_all_data(config: RunConfig) -> RunConfig:
    """Return the configuration without the limits of the short joint run."""
    return from_given(config, {k: v for k, v in config.given.items() if k not in SHORT_RUN_LIMITS})


def for_tasks(config: RunConfig, tasks: Names, settings: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of some of its tasks, with other settings for those in `CHOSEN`.

    Values by task are left out for the other tasks.
    """
    roles = [role for role in METHODS if role in CHOSEN]
    replaced = {key for role in roles for key in of_methods(role, getattr(config, role))}
    given: dict[str, Any] = {}
    for key, value in config.given.items():
        if key in CHOSEN or key in replaced:
            continue
        if isinstance(value, Mapping) and value.keys() <= set(config.tasks):
            value = {task: one for task, one in value.items() if task in tasks}
            if not value:
                continue
        given[key] = value
    mode = "multitask" if len(tasks) > 1 else "single"
    return from_given(config, {**given, **settings, "mode": mode, "tasks": tasks})


def from_given(config: RunConfig, given: Mapping[str, Any]) -> RunConfig:
    return RunConfig.from_flat(given, config.user_methods)
