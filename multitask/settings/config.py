"""The configuration of a run: all settings that determine its results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import Field, fields
from functools import cache, cached_property
from inspect import Parameter, Signature
from os import PathLike, fspath
from os.path import expanduser
from typing import Any, ClassVar

from common.errors import RunError, SettingsError, UserError
from common.settings import Settings, convert, default_of, hints_of
from multitask.sampling import FirstTask
from multitask.settings.following_defaults import (
    UNSCALED,
    default_batches,
    default_scale,
    following_defaults,
)
from multitask.settings.methods import METHOD_ROLES, UserMethods, defaults_of, owners
from multitask.settings.methods_by_name import of_methods
from multitask.settings.rules import faults, ineffective_faults
from multitask.settings.run_settings import RunSettings
from multitask.settings.setting_types import TRAINING_MODES, has_mode
from multitask.settings.settings_by_name import explicit, resolved, user_methods_in
from multitask.settings.user_methods import check_use, sources
from tasks import TASKS, TaskOptions
from tasks.objectives import Balance, Objective, balance_of
from tasks.own_tasks import OwnTaskOptions
from tasks.task_description import from_json


class RunConfig(RunSettings):
    """The complete configuration of a run: the same configuration computes the same run.

    Every setting is a keyword with the name of its flag: those of `RunSettings`, and those of the
    methods. A method is a name or an object: `sampling="temperature", temperature=3` is
    `sampling=Temperature(temperature=3)`. A weight of a regulariser, such as `smart_weight`, is one
    number, or one per task. Raise SettingsError for an invalid or contradictory setting. Copy with
    `changed`: `dataclasses.replace` keeps defaults that depend on the old tasks and methods.
    """

    __signature__: ClassVar[Signature]
    given: ClassVar[Mapping[str, Any]] = {}  # the explicit settings

    def __init__(self, **settings: Any) -> None:
        self._fill(settings, (), strict=True)
        for fault in ineffective_faults(self, explicit(settings)):
            raise SettingsError(fault)

    def __init_subclass__(cls, **_: Any) -> None:
        line = "expected RunConfig itself, found a subclass; write a function that returns one"
        raise SettingsError(f"class {cls.__name__}: {line}")

    def _fill(self, settings: Mapping[str, Any], user_methods: UserMethods, strict: bool) -> None:
        """Set all fields from settings by name; if `strict`, refuse contradictions."""
        paths = possible_paths()
        settings = {key: as_stored(value, key in paths) for key, value in settings.items()}
        object.__setattr__(self, "given", {key: copied(value) for key, value in settings.items()})
        found = resolved(settings, fields(self), hints_of(RunConfig), user_methods, strict)
        for name, value in found.items():
            object.__setattr__(self, name, value)
        if not strict:
            return
        try:
            for name, content in self.own_tasks.items():
                from_json(name, content)
        except UserError as error:
            raise SettingsError(str(error)) from error
        for fault in faults(self):
            raise SettingsError(fault)

    @classmethod
    def from_flat(cls, settings: Mapping[str, Any], user_methods: UserMethods = ()) -> RunConfig:
        """Return the configuration of settings by name."""
        config = object.__new__(cls)
        config._fill(settings, user_methods, strict=True)
        return config

    @classmethod
    def from_json(cls, content: Mapping[str, Any], user_methods: UserMethods = ()) -> RunConfig:
        """Return the configuration that `to_json` wrote; a missing key has its default.

        Raise RunError for an unknown key or an invalid value. Contradictions between settings are
        not checked: a finished run can be used.
        """
        for name in ("mode", "tasks"):
            if name not in content:
                raise RunError(f"{name}: expected it among the settings of a run, found none")
        check_use(convert("use", dict[str, str], content.get("use", {})), user_methods)
        config = object.__new__(cls)
        settings = {key: value for key, value in content.items() if key != "use"}
        if "outside_tasks" in settings:
            raise RunError("expected the settings of a run, found 'outside_tasks'")
        try:
            config._fill(settings, user_methods, strict=False)
        except SettingsError as error:
            raise RunError(str(error)) from error
        follows = following_defaults(vars(config))
        # A default may have been chosen instead of that of a preset or an objective.
        others = config.preset is not None or bool(getattr(config.objective, "defaults", {}))
        chosen = config.flat() if others else config.flat_other_than_defaults()
        given = {k: v for k, v in chosen.items() if k not in follows or v != follows[k]}
        for one in config.regularizers:  # one weight of all tasks is stored once per task
            key = f"{one.prefix}weight"
            given[key] = one_weight(given[key], config.tasks)
        object.__setattr__(config, "given", given)
        check_tasks(config.tasks, config.own_tasks, config.task_classes)
        return config

    def changed(self, **settings: Any) -> RunConfig:
        """Return the configuration with other settings by name, also those of methods.

        Defaults are computed again, for the new tasks and methods; settings of a method that is
        replaced are dropped, and so are the options of a task that is left out or is now an object.
        A new setting without an effect is refused; one that this configuration has already may lose
        its effect, such as the learning rate of an encoder that is now frozen. A configuration of a
        stored run keeps all values of its preset, objective and mode: which of them were defaults
        is not stored.
        """
        exchanged = [role for role in METHOD_ROLES if role in settings]
        gone = {key for role in exchanged for key in of_methods(role, getattr(self, role))}
        kept = {key: value for key, value in self.given.items() if key not in gone}
        if isinstance(tasks := settings.get("tasks"), list | tuple):
            named = {one for one in tasks if isinstance(one, str)}
            for key in {"task_options", "own_tasks"} & kept.keys():
                kept[key] = {name: kept[key][name] for name in kept[key].keys() & named}
        config = RunConfig.from_flat({**kept, **settings}, self.user_methods)
        for fault in ineffective_faults(config, explicit(settings)):
            raise SettingsError(fault)
        return config

    @property
    def step_batches(self) -> int:
        """Batches of one optimiser step: by default as many as there are tasks."""
        if self.batches_per_step is not None:
            return self.batches_per_step
        return default_batches(vars(self))

    @property
    def own_layers(self) -> dict[str, int]:
        """The number of last layers that are a task's own, for each task that has such."""
        if self.branch is None:
            return {}
        return dict.fromkeys(self.branch_only or self.tasks, int(self.branch.removeprefix("top-")))

    @property
    def main_tasks(self) -> tuple[str, ...]:
        """The tasks that are not auxiliary."""
        return tuple(name for name in self.tasks if name not in self.auxiliary)

    @property
    def pretrains(self) -> bool:
        """Whether the encoder is trained further, before any task."""
        return self.mode == "pretrain"

    @property
    def task_objective(self) -> Objective | None:
        """The objective that replaces the cross-entropy of tasks with classes; None without one."""
        return self.objective if isinstance(self.objective, Objective) else None

    @property
    def pretraining_objective(self) -> Any:
        """The objective of pre-training, a `PretrainObjective`; None without one."""
        return None if isinstance(self.objective, Objective) else self.objective

    @property
    def balance(self) -> Balance | None:
        """How the terms of each task are merged before the combiner; None without such terms."""
        return balance_of(self.objective)

    @property
    def text_file(self) -> str | None:
        """The file that pre-training reads instead of tasks; None without one."""
        objective = self.pretraining_objective
        return objective.file if self.pretrains and objective is not None else None

    @property
    def user_methods(self) -> tuple[type[Settings], ...]:
        """The classes of its methods that are not built in."""
        return user_methods_in({one.name: getattr(self, one.name) for one in fields(self)})

    def first(self) -> FirstTask | None:
        """Return the only task of the first epochs; None if all tasks are sampled."""
        return self.sampling.first() or self.schedule.first()

    @property
    def first_method(self) -> str:
        """Return the role and name of the method that gives one task the first epochs."""
        role = "schedule" if self.sampling.first() is None else "sampling"
        return f"{role} {getattr(self, role).name}"

    @property
    def task_classes(self) -> dict[str, type[TaskOptions]]:
        """The known tasks by name, without those over the user's own files."""
        return TASKS | {one.name: one for one in self.outside_tasks}

    def options_of(self, task: str) -> TaskOptions | OwnTaskOptions:
        """Return the options of a task, or the same facts about one over the user's own files."""
        if task in self.own_tasks:
            return OwnTaskOptions(task, self.own_tasks[task])
        cls: Any = self.task_classes[task]  # mypy does not see that classes are hashable
        options = self.task_options.get(task)
        return cls(**options) if options else default_options(cls)

    def flat(self) -> dict[str, Any]:
        """Return every setting by name, those of methods too."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "outside_tasks":
                continue
            found |= of_methods(one.name, value) if one.name in METHOD_ROLES else {one.name: value}
        return found

    def flat_other_than_defaults(self) -> dict[str, Any]:
        """Return the settings of `flat` that are not defaults."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in METHOD_ROLES and isinstance(value, Settings):
                found |= value.other_than_defaults()
                if value.name != default_values()[one.name]:
                    found[one.name] = value.name
            elif one.name in METHOD_ROLES:  # several, or none
                found |= of_methods(one.name, value)
            elif one.name != "outside_tasks" and value != default_of(one):
                found[one.name] = value
        return found

    def unused(self) -> tuple[str, ...]:
        """Return the names of settings that this configuration does not use."""
        used = self.flat()
        found = [key for key in defaults_of(self.user_methods) if key not in used]
        if default_scale(vars(self)) == UNSCALED:
            found.append("similarity_scale")
        return (*found, *(() if self.drop_leaks else ("leaks_of",)))

    def to_json(self) -> dict[str, Any]:
        """Return every setting as JSON; `use` has the user's files of methods, with checksums."""
        content = self.flat() | {"batches_per_step": self.step_batches}
        return json.loads(json.dumps(content | ({"use": self.sources} if self.sources else {})))

    @cached_property
    def sources(self) -> dict[str, str]:
        """The files of a user's own methods with checksums, as they were at the first use."""
        return sources(self.user_methods)

    def digest(self) -> str:
        """Return a short hash of the differences from the defaults, unchanged by new settings."""
        plain = default_values()
        differs = {k: v for k, v in self.to_json().items() if k not in plain or v != plain[k]}
        differs.pop("preset", None)
        return hashlib.sha256(json.dumps(differs, sort_keys=True).encode()).hexdigest()[:8]


RunConfig.__signature__ = Signature(  # what `help` and editors show of `RunConfig(...)`
    [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=default_of(one), annotation=one.type)
        for one in fields(RunConfig)
        if one.name != "outside_tasks"
    ]
    + [Parameter("settings_of_methods", Parameter.VAR_KEYWORD)]
)


def one_weight(by_task: Any, tasks: Sequence[str]) -> Any:
    """Return the weight that all of these tasks have, or the weights by task if they differ."""
    equal = isinstance(by_task, Mapping) and len({*by_task.values()}) == 1
    return next(iter(by_task.values())) if equal and by_task.keys() == {*tasks} else by_task


@cache
def default_options(cls: Any) -> TaskOptions:
    """Return the object of a task with its default options, which is asked for often."""
    return cls()


def as_stored(value: Any, is_path: bool) -> Any:
    """Return a path, or the paths in a tuple or list, as text; other values unchanged.

    In settings that are paths, `~` is expanded, also in texts.
    """
    if type(value) in (tuple, list):
        return type(value)(as_stored(one, is_path) for one in value)
    text = fspath(value) if isinstance(value, PathLike) else value
    return expanduser(text) if is_path and isinstance(text, str) else text


def copied(value: Any) -> Any:
    """Return a deep copy of lists and mappings, which the caller may change; others unchanged."""
    if type(value) is dict:
        return {key: copied(one) for key, one in value.items()}
    return list(map(copied, value)) if type(value) is list else value


def check_tasks(
    names: Iterable[str], own: Mapping[str, Mapping[str, object]], known: Container[str]
) -> None:
    """Raise RunError for a damaged description of an own task, or a name that is not known."""
    for name, described in own.items():
        from_json(name, described)
    for name in names:
        if name not in known and name not in own:
            raise RunError(f"tasks: expected names of tasks, found {name!r}")


def check_complete(config: RunConfig) -> None:
    """Raise SettingsError for a configuration without a mode or tasks."""
    if not config.tasks and config.text_file is None:
        raise SettingsError('tasks: expected one or more, such as ("sst", "sts"), found none')
    if config.mode not in TRAINING_MODES:
        raise SettingsError(
            f"mode: expected one of {', '.join(TRAINING_MODES)}, found {config.mode or 'none'}"
        )
    if config.pretrains and config.objective is None:
        raise SettingsError("objective: expected one in mode pretrain, found none")


def difference(
    mine: Mapping[str, object], theirs: Mapping[str, object], ignored: Container[str] = ()
) -> str | None:
    """Return the first key in which two configurations as JSON differ; None if equal."""
    for key in sorted(mine.keys() | theirs.keys()):
        if key not in ignored and key != "preset" and mine.get(key) != theirs.get(key):
            return first_difference(key, mine.get(key), theirs.get(key))
    return None


def first_difference(name: str, mine: object, theirs: object) -> str:
    """Return a phrase about the first part in which two different values of a setting differ."""
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        for key in sorted(mine.keys() & theirs.keys()):
            if mine[key] != theirs[key]:
                return first_difference(f"{name}.{key}", mine[key], theirs[key])
    return f"{name} is {theirs!r} there and {mine!r} here"


@cache
def settings_of_mode(mode: str) -> dict[str, Field[Any]]:
    """Return the settings that a training mode of the command line has, by name."""
    known = [one for one in fields(RunConfig) if "help" in one.metadata]
    return {one.name: one for one in known if has_mode(one, mode)}


@cache
def path_settings() -> tuple[str, ...]:
    """Return the names of the settings that are files or folders."""
    found = {one.name: one for one in fields(RunConfig)}
    for by_role in owners().values():
        found |= next(iter(by_role.values()))[0].by_key()
    return tuple(sorted(key for key, one in found.items() if one.metadata.get("path")))


@cache
def possible_paths() -> tuple[str, ...]:
    """Return the names of the settings that may be files or folders: an encoder may be a name."""
    return ("encoder", *path_settings())


@cache
def default_values() -> dict[str, Any]:
    """Return the default of every setting as JSON, also of those of methods."""
    plain = RunConfig(mode="", tasks=()).to_json()
    return json.loads(json.dumps({**defaults_of(), **plain}))
