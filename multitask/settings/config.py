"""The configuration of a run: all settings that determine its results."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from common.errors import SettingsError, suggestion
from common.settings import Settings, build, convert, default_of, hints_of, methods, plain
from losses.objectives import TrainingObjective
from multitask.regularizers import Distillation
from multitask.settings.methods import ROLES
from multitask.settings.run_settings import PRESETS, RunSettings
from tasks.objectives import ContrastiveEPO
from tasks.own_task import OwnTask
from tasks.own_tasks import complete_task, tasks_by_name


class RunConfig(RunSettings):
    """The complete configuration of a run: the same configuration computes the same run.

    Every setting is a keyword, as in `RunSettings`. A method is a name, a mapping with `name` and
    its settings, or an object: `sampling="temperature"`, `sampling={"name": "temperature",
    "temperature": 3}`, `sampling=Temperature(temperature=3)`; a mapping without `name` changes
    settings of the default method. `tasks` are such names, mappings or objects, as from `task`, or
    their options by name: `tasks={"sst": {"head": "softmax"}}`. Raise SettingsError for an invalid
    or contradictory setting.
    """

    def __init__(self, **settings: Any) -> None:
        given = plain(settings)
        if "tasks" in given:
            given["tasks"] = tasks_by_name(given["tasks"])
        known = {one.name: one for one in fields(RunConfig)}
        for key in given.keys() - known:
            pairs = ((role, m) for role, base in ROLES.items() for m in methods(base).values())
            roles = [role for role, m in pairs if key in hints_of(m) and role != "regularizers"]
            hint = f"; write {roles[0]}: {{{key}: ...}}" if roles else suggestion(key, known)
            raise SettingsError(f"no setting {key!r}{hint}")
        given = with_defaults(given)
        for key, hint in hints_of(RunConfig).items():
            default = default_of(known[key])
            value = checked(key, hint, given[key], default) if key in given else default
            object.__setattr__(self, key, value)
        if not self.mode:
            object.__setattr__(self, "mode", mode_of(self.tasks, self.objective))
        if self.teacher and not any(one.learns_from_teacher for one in self.regularizers):
            taught = (*self.regularizers, Distillation(weight=1.0))
            object.__setattr__(self, "regularizers", taught)
        from multitask.settings.rules import faults

        for fault in faults(self):
            raise SettingsError(fault)

    @property
    def step_batches(self) -> int:
        """Batches of one optimiser step: by default as many as there are tasks."""
        alone = self.schedule.one_batch or self.pretrains
        return self.batches_per_step or (1 if alone else max(1, len(self.tasks)))

    @property
    def on_embeddings(self) -> bool:
        """Whether gradients are combined on the embeddings of a batch, not on the parameters.

        By default this is so if one batch has all objectives: one backward pass, not three.
        """
        if self.gradients is not None:
            return self.gradients == "representation"
        alone = len(self.tasks) == 1 and self.step_batches == 1
        return self.balance is not None and alone

    @property
    def own_layers(self) -> int:
        """The number of last layers of which each task has its own copy."""
        return int(self.branch.removeprefix("top-")) if self.branch else 0

    @property
    def pretrains(self) -> bool:
        """Whether the encoder is trained further, before any task."""
        return self.mode == "pretrain"

    @property
    def balance(self) -> ContrastiveEPO | None:
        """The objective that merges each task's terms before the combiner; None without one."""
        return self.objective if isinstance(self.objective, ContrastiveEPO) else None

    @property
    def text_file(self) -> str | None:
        """The file that pre-training reads instead of tasks; None without one."""
        return getattr(self.objective, "file", None)

    @property
    def own_tasks(self) -> dict[str, OwnTask]:
        """The tasks on the user's own files."""
        return {name: one for name, one in self.tasks.items() if isinstance(one, OwnTask)}

    def to_json(self) -> dict[str, Any]:
        """Return the settings; tasks are a list, since their order matters."""
        return super().to_json() | {"tasks": [one.to_json() for one in self.tasks.values()]}

    def digest(self) -> str:
        """Return a short hash of the configuration."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:8]


def with_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings, with the defaults of their preset and of their objective."""
    found, objective = dict(given), given.get("objective")
    if not isinstance(found.get("regularizers", ()), list | tuple):
        found["regularizers"] = [found["regularizers"]]
    if given.get("preset") is not None:
        mode = given.get("mode") or mode_of(given.get("tasks", ()), objective)
        if (preset := PRESETS.get(str(given["preset"]))) is None:
            names = ", ".join(PRESETS)
            raise SettingsError(f"preset: choose from {names}, found {given['preset']!r}")
        found = merged({**preset["settings"], **preset.get(mode, {})}, found)
    chosen = objective_class(found.get("objective"))
    return found if chosen is None else merged(chosen.defaults, found)


def objective_class(objective: Any) -> type[TrainingObjective] | None:
    """Return the class of an objective that is given in any way; None for cross-entropy."""
    return methods(TrainingObjective).get(str(as_mapping(objective).get("name")))


def mode_of(tasks: Any, objective: Any) -> str:
    """Return the mode that follows from tasks and objective; empty if nothing is trained."""
    chosen = objective_class(objective)
    if chosen is not None and chosen.pretrains:
        return "pretrain"
    return {0: "", 1: "single"}.get(len(tasks), "multitask")


def merged(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings, in which those of `given` replace those of `base`.

    Settings of a method or a task are replaced one by one, unless it is an object or another one.
    """
    found = {**base, **given}
    for role in ROLES.keys() & base.keys() & given.keys() - {"regularizers"}:
        found[role] = updated(base[role], given[role])
    if "tasks" in base and "tasks" in given:
        had, new = tasks_by_name(base["tasks"]), tasks_by_name(given["tasks"])
        found["tasks"] = {name: updated(had.get(name), one) for name, one in new.items()}
    return found


def updated(old: Any, new: Any) -> Any:
    """Return a method or a task, with the settings of the old one if it is the same one."""
    if old is None or not isinstance(new, str | Mapping):
        return new
    had, given = as_mapping(old), as_mapping(new)
    same = given.get("name", had.get("name")) == had.get("name", given.get("name"))
    return {**had, **given} if same else given


def as_mapping(method: Any) -> dict[str, Any]:
    """Return a method as a mapping with its settings, if it has a name."""
    if isinstance(method, Settings):
        return method.to_json()
    return dict(method) if isinstance(method, Mapping) else {"name": method}


def checked(key: str, hint: Any, value: Any, default: Any) -> Any:
    """Return the value of a setting, or its default; raise SettingsError if it is invalid."""
    if key == "tasks":
        return {name: complete_task(one) for name, one in value.items()}
    if key == "regularizers":
        return tuple(build(key, ROLES[key], one) for one in value)
    if key not in ROLES:
        return convert(key, hint, value)
    if value is None or (key == "objective" and value in ("ce", {"name": "ce"})):
        return default  # cross-entropy is no other objective
    if isinstance(value, Mapping) and default is not None:
        value = {"name": default.name, **value}
    return build(key, ROLES[key], value)
