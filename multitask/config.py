"""Everything that decides what a run computes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping
from dataclasses import fields
from functools import cache
from inspect import Parameter, Signature
from typing import Any, ClassVar

from common.errors import SettingsError, UserError
from common.settings import (
    Settings,
    convert,
    default_of,
    hints_of,
)
from multitask.errors import RunError
from multitask.flat import (
    METHODS,
    UNSCALED,
    Outside,
    default_gradients,
    default_scale,
    mode_of,
    of_methods,
    outside_of,
    resolved,
)
from multitask.legacy import legacy_config, upgraded
from multitask.methods import defaults_of, methods, owners
from multitask.rules import faults
from multitask.run_settings import RunSettings
from multitask.sampling import FirstTask
from multitask.user_methods import check_use, sources
from tasks import TASKS, TaskOptions
from tasks.described import from_json

TRAINED = ("single", "multitask", "pretrain", "pareto")


class RunConfig(RunSettings):
    """One training run, complete: the same configuration computes the same run.

    Every setting is a keyword, under the name that it has on the command line: those of
    `RunSettings`, and those of the methods. A method is a name or an object:
    `sampling="temperature", temperature=3` is `sampling=Temperature(temperature=3)`. A weight of a
    regulariser, such as `smart_weight`, is a number for all tasks, or one by task. Raises
    SettingsError, in one line, for what no run can have. Copy it by `changed`:
    `dataclasses.replace` also keeps what followed from the old tasks and methods.
    """

    __signature__: ClassVar[Signature]
    given: ClassVar[Mapping[str, Any]] = {}  # the settings that this object was made from

    def __init__(self, **settings: Any) -> None:
        self._fill(settings, (), strict=True)

    def _fill(self, settings: Mapping[str, Any], outside: Outside, strict: bool) -> None:
        """Take settings in their flat form; `strict`: those that contradict are refused."""
        object.__setattr__(self, "given", {key: own(value) for key, value in settings.items()})
        found = resolved(settings, fields(self), hints_of(RunConfig), outside, strict)
        for name, value in found.items():
            object.__setattr__(self, name, value)
        if not strict:
            return
        for name, described in self.own_tasks.items():
            try:
                from_json(name, described)
            except UserError as error:
                raise SettingsError(str(error)) from error
        for fault in faults(self):
            raise SettingsError(fault)

    @classmethod
    def from_flat(cls, settings: Mapping[str, Any], outside: Outside = ()) -> RunConfig:
        """The configuration of settings by name, with methods from `outside` the tree."""
        made = object.__new__(cls)
        made._fill(settings, outside, strict=True)
        return made

    @classmethod
    def from_json(cls, content: Mapping[str, Any], outside: Outside = ()) -> RunConfig:
        """What `to_json` wrote; a key that an older one lacks has its default.

        Raises RunError for a key that is none of a configuration, and for what is no value of it.
        How settings go together is not judged again: a run that was made can be used.
        """
        for name in ("mode", "tasks"):
            if name not in content:
                raise RunError(f"{name}: expected it among the settings of a run, found none")
        check_use(convert("use", dict[str, str], content.get("use", {})), outside)
        made = object.__new__(cls)
        settings = {key: value for key, value in upgraded(content).items() if key != "use"}
        if "outside_tasks" in settings:
            raise RunError("expected the settings of a run, found 'outside_tasks'")
        try:
            made._fill(settings, outside, strict=False)
        except SettingsError as error:
            raise RunError(str(error)) from error
        follows = {
            "mode": mode_of(vars(made)),
            "batches_per_step": step_batches(settings),
            "similarity_scale": default_scale(vars(made)),
            "gradients": default_gradients(vars(made)),
        }
        given = {k: v for k, v in made.flat().items() if k not in follows or v != follows[k]}
        object.__setattr__(made, "given", given)
        for name, described in made.own_tasks.items():
            from_json(name, described)
        for name in made.tasks:
            if name not in made.task_classes and name not in made.own_tasks:
                raise RunError(f"tasks: expected names of tasks, found {name!r}")
        return made

    def changed(self, **settings: Any) -> RunConfig:
        """The configuration with other settings, by name, those of methods among them.

        What was not given has its default anew, for the other tasks or the other method; settings
        of a method that is exchanged go with it.
        """
        exchanged = [role for role in METHODS if role in settings]
        gone = {key for role in exchanged for key in of_methods(role, getattr(self, role))}
        kept = {key: value for key, value in self.given.items() if key not in gone}
        return RunConfig.from_flat({**kept, **settings}, self.outside)

    @property
    def step_batches(self) -> int:
        """Batches of one optimiser step: one of each task, unless the configuration says other."""
        if self.batches_per_step is not None:
            return self.batches_per_step
        alone = self.schedule.one_batch or self.pretrains
        return 1 if alone else max(1, len(self.tasks))

    @property
    def pretrains(self) -> bool:
        """Whether the encoder is trained further, before any task."""
        return self.mode == "pretrain"

    @property
    def text_file(self) -> str | None:
        """The file that pre-training reads instead of tasks; None without one."""
        return self.objective.file if self.pretrains and self.objective is not None else None

    @property
    def outside(self) -> tuple[type[Settings], ...]:
        """The classes of its methods that are not in the tree."""
        return outside_of({one.name: getattr(self, one.name) for one in fields(self)})

    def first(self) -> FirstTask | None:
        """The task that has the first epochs to itself; None where all tasks are sampled."""
        return self.sampling.first() or self.schedule.first()

    @property
    def first_method(self) -> str:
        """Which method gives one task the first epochs, as a flag."""
        if self.sampling.first() is not None:
            return f"--sampling {self.sampling.name}"
        return f"--schedule {self.schedule.name}"

    @property
    def task_classes(self) -> dict[str, type[TaskOptions]]:
        """The tasks that it may have beside own ones, by name."""
        return TASKS | {one.name: one for one in self.outside_tasks}

    def options_of(self, task: str) -> TaskOptions | None:
        """A task as it is set; None of one over somebody's own files."""
        if task in self.own_tasks:
            return None
        return self.task_classes[task](**self.task_options.get(task, {}))

    def flat(self) -> dict[str, Any]:
        """Every setting by its name: the configuration's, and those of its methods."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "outside_tasks":
                continue
            found |= of_methods(one.name, value) if one.name in METHODS else {one.name: value}
        return found

    def unused(self) -> tuple[str, ...]:
        """Names of settings that this configuration does not use, whatever they are."""
        used = self.flat()
        found = [key for key in defaults_of() if key not in used]
        if default_scale(vars(self)) == UNSCALED:
            found.append("similarity_scale")
        return (*found, *(() if self.drop_leaks else ("leaks_of",)))

    def to_json(self) -> dict[str, Any]:
        """Every setting as JSON; batches per step as the number that the run takes.

        `use` has the files of methods from outside the tree, with their checksums.
        """
        content = self.flat() | {"batches_per_step": self.step_batches}
        use = sources(self.outside)
        return json.loads(json.dumps(content | ({"use": use} if use else {})))

    def digest(self) -> str:
        """A short hash of what differs from the defaults: a new setting renames no old run."""
        plain = default_values()
        content = legacy_config(self.to_json())
        differs = {k: v for k, v in content.items() if k not in plain or v != plain[k]}
        differs.pop("preset", None)
        return hashlib.sha256(json.dumps(differs, sort_keys=True).encode()).hexdigest()[:8]

    def difference(self, other: Mapping[str, object]) -> str | None:
        """The first key in which `other`, a configuration read from JSON, differs; None if none."""
        return difference(self.to_json(), other)


def signature() -> Signature:
    """What `help` and editors show of `RunConfig(...)`: its own settings, and any others."""
    own = [one for one in fields(RunConfig) if one.name != "outside_tasks"]
    named = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=default_of(one), annotation=one.type)
        for one in own
    ]
    return Signature([*named, Parameter("settings_of_methods", Parameter.VAR_KEYWORD)])


RunConfig.__signature__ = signature()


def own(value: Any) -> Any:
    """A copy of a list or a mapping, which its maker may go on to change; others as they are."""
    if type(value) is dict:
        return {key: own(one) for key, one in value.items()}
    return list(map(own, value)) if type(value) is list else value


def step_batches(content: Mapping[str, Any]) -> int:
    """Batches of a step of a stored configuration where nothing else is set."""
    schedule = methods("schedule").get(str(content.get("schedule")))
    alone = getattr(schedule, "one_batch", False) or content["mode"] == "pretrain"
    return 1 if alone else max(1, len(content["tasks"]))


def check_complete(config: RunConfig) -> None:
    """SettingsError for a configuration that others are made from: without a mode or tasks."""
    if config.mode not in TRAINED:
        raise SettingsError(
            f"mode: expected one of {', '.join(TRAINED)}, found {config.mode or 'none'}"
        )
    if config.pretrains and config.objective is None:
        raise SettingsError("objective: expected one in mode pretrain, found none")
    if not config.tasks and config.text_file is None:
        raise SettingsError("tasks: expected one or more, found none")


def difference(
    mine: Mapping[str, object], theirs: Mapping[str, object], ignored: Container[str] = ()
) -> str | None:
    """The first key in which two configurations as JSON differ; None if none.

    A key that an older configuration lacks has its default, or what older versions did.
    """
    mine, theirs = ({**default_values(), **upgraded(one)} for one in (mine, theirs))
    for key in sorted(mine.keys() | theirs.keys()):
        if key not in ignored and key != "preset" and mine.get(key) != theirs.get(key):
            return f"{key} is {theirs.get(key)!r} there and {mine.get(key)!r} here"
    return None


@cache
def places() -> tuple[str, ...]:
    """Names of the settings that are files or folders, by name."""
    found = {one.name: one for one in fields(RunConfig)}
    for by_role in owners().values():
        found |= next(iter(by_role.values()))[0].by_key()
    return tuple(sorted(key for key, one in found.items() if one.metadata.get("path")))


@cache
def default_values() -> dict[str, Any]:
    """The default of every setting, those of all methods among them, as JSON."""
    plain = RunConfig(mode="", tasks=()).to_json()
    return json.loads(json.dumps({**defaults_of(), **plain}))
