"""The rules of the advice: which groups of tasks to train, with which settings, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from multitask.affinity.advice import Advice, AdvisedRun, AdvisedSystem, Choice
from multitask.affinity.result import Affinity, Promise
from multitask.conflict_layers import affordable, is_bilstm
from multitask.model import LAYER
from multitask.settings.config import RunConfig
from multitask.settings.following_defaults import has_similarities
from multitask.settings.methods import METHOD_ROLES
from multitask.settings.methods_by_name import of_methods
from tasks.kinds import with_main_metric

SINGLES, ONE_MODEL, GROUPS, BRANCHES = "singles", "one model", "groups", "branches"
EQUAL_SIZES = 1.1  # ratio of the largest to the smallest task, up to which they count as equal
SHORT_RUN_LIMITS = ("limit", "dev_limit", "test_limit", "steps_per_epoch")
CHOSEN = (  # settings of the proposed runs
    *("sampling", "schedule", "combiner", "batches_per_step"),
    *("adapter", "auxiliary"),
)
OFF = {"objective": None, "class_balanced": False}  # settings of presets, not used
LONGEST_NAME = 80  # of a run, which is a part of names of files
Names = tuple[str, ...]
Served = tuple[Names, Names]  # tasks of a run, and those of them that it serves


@dataclass(frozen=True)
class Cosine:
    """The mean cosine of the gradients of two tasks, with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float
    tasks: Names

    def __str__(self) -> str:
        interval = f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"
        return f"mean cosine {interval} of {' and '.join(self.tasks)}"


@dataclass(frozen=True)
class Branches:
    """The layers of the encoder of which some tasks have copies of their own, and the reason."""

    tasks: Names
    layers: tuple[int, ...]
    reason: str

    @property
    def choice(self) -> Choice:
        return Choice(self.tasks, "branch", " ".join(map(str, self.layers)), self.reason)


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
        choices += [one.choice for one in branches if one]
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
        if len(name) > LONGEST_NAME:
            name = f"{len(tasks)}-tasks-{sha256(name.encode()).hexdigest()[:8]}"
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
        equal, cosine = ratio <= EQUAL_SIZES, self.cosine(tasks)
        sizes = f"{largest} has {ratio:.2f} times the training examples of {smallest}"
        sampling = ("round-robin", "about equally many examples") if equal else ("annealed", sizes)
        yield Choice(tasks, "sampling", *sampling)
        if cosine.high < 0:
            yield Choice(tasks, "schedule", "joint", "gradients of one step are combined")
            yield Choice(tasks, "combiner", "pcgrad", f"gradients are in conflict: {cosine}")
        else:
            each, one_task = "each task in every step", "no gradients to combine"
            schedule = ("joint", each) if equal else ("individual", one_task)
            yield Choice(tasks, "schedule", *schedule)
            yield Choice(tasks, "combiner", "sum", f"no clear conflict: {cosine}")

    def cosine(self, tasks: Names) -> Cosine:
        """Return the mean cosine of two of the tasks over all parts of the encoder."""
        gram = self.found.estimates["gram"]
        return self.clearest_conflict(tasks, gram.pairs, gram.ends)

    def clearest_conflict(self, tasks: Names, means: np.ndarray, ends: np.ndarray) -> Cosine:
        """Return the mean cosine whose interval has the lowest upper end, of two of the tasks.

        `means` are (m, m), the `ends` of their intervals (2, m, m).
        """
        places = [self.found.tasks.index(task) for task in tasks]
        pair = min(combinations(sorted(places), 2), key=lambda pair: float(ends[1][pair]))
        low, high = (float(end[pair]) for end in ends)
        return Cosine(float(means[pair]), low, high, self.names(pair))

    def branches(self, groups: Sequence[Served]) -> list[Branches | None]:
        """Return the layers of each group in which its tasks conflict, None without any."""
        return [self.branch(*one) if len(one[0]) > 1 else None for one in groups]

    def branch(self, tasks: Names, serves: Names) -> Branches | None:
        """Return the layers in which gradients conflict, the clearest ones within the budget."""
        found = self.found
        cosines = {
            int(name.removeprefix(LAYER)): self.clearest_conflict(
                tasks, found.cosines[place], found.cosine_ends[:, place]
            )
            for place, name in enumerate(found.parts)
            if name.startswith(LAYER)
        }
        conflicts = {layer: one for layer, one in cosines.items() if one.high < 0}
        if not conflicts or is_bilstm(self.joint):
            return None
        start = self.run(tasks, serves).config.changed(**self.start)
        order = sorted(conflicts, key=lambda layer: conflicts[layer].high)
        if not (layers := sorted(affordable(start, order))):
            return None
        each = "; ".join(f"layer {layer}: {conflicts[layer]}" for layer in layers)
        return Branches(tasks, tuple(layers), f"from the joint run's weights; {each}")

    @property
    def start(self) -> dict[str, Any]:
        """Settings of branches, which start from the joint run."""
        return {"init": str(self.joint), "adapter": "copies"}

    def branched_run(self, tasks: Names, serves: Names, branch: Branches | None) -> AdvisedRun:
        """Return the run of a group with branches in these layers."""
        run = self.run(tasks, serves)
        if branch is None:
            return run
        config = run.config.changed(**self.start, adapter_layers=branch.layers)
        return replace(run, name=f"{run.name}-branches", config=config)


def on_all_data(config: RunConfig) -> RunConfig:
    """Return the configuration without the limits of the short joint run."""
    return from_given(config, {k: v for k, v in config.given.items() if k not in SHORT_RUN_LIMITS})


def for_tasks(config: RunConfig, tasks: Names, settings: Mapping[str, Any]) -> RunConfig:
    """Return the configuration of some of its tasks, with other settings for those in `CHOSEN`.

    Values by task, and settings that only the other tasks use, are left out.
    """
    roles = ["regularizers", *(role for role in METHOD_ROLES if role in CHOSEN)]
    replaced = {key for role in roles for key in of_methods(role, getattr(config, role))}
    unused = {*CHOSEN, *replaced, *settings_of_other_tasks(config, tasks)}
    given = dict[str, Any]()
    for key, value in config.given.items():
        if isinstance(value, Mapping) and value.keys() <= set(config.tasks):
            value = {task: one for task, one in value.items() if task in tasks}
            if not value:
                continue
        if key not in unused:
            given[key] = value
    given |= {key: off for key, off in OFF.items() if key in unused and getattr(config, key)}
    given["regularizers"] = tuple(
        replace(one, weight=weights)
        for one in config.regularizers
        if (weights := {task: one.weights[task] for task in tasks if task in one.weights})
    )
    mode = "multitask" if len(tasks) > 1 else "single"
    return from_given(config, {**given, **settings, "mode": mode, "tasks": tasks})


def settings_of_other_tasks(config: RunConfig, tasks: Names) -> set[str]:
    """Return the names of settings that belong to a kind of task which none of `tasks` is of."""
    options, found = [config.options_of(task) for task in tasks], set[str]()
    if not any(one.has_classes for one in options):
        objective = of_methods("objective", config.objective)
        found |= {*objective, "class_balanced", "label_smoothing"}
    if not any(one.has_columns for one in options):
        found.add("class_weights")
    if config.select_by and not any(
        with_main_metric(one.build().kind, config.select_by) for one in options
    ):
        found.add("select_by")
    if not any(has_similarities(vars(config), task) for task in tasks):
        found.add("similarity_scale")
    taught = [one.weights for one in config.regularizers if one.learns_from_teacher]
    if not any(task in weights for weights in taught for task in tasks):
        found.add("teacher")
    return found


def from_given(config: RunConfig, given: Mapping[str, Any]) -> RunConfig:
    return RunConfig.from_flat(given, config.user_methods)
