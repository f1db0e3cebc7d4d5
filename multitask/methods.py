"""The methods of each part of a configuration: the built-in ones in a table, and a user's own.

A new method needs a class and an entry in this table. No torch is imported here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from common.atomic_files import check_regular
from common.errors import RunError, SettingsError, one_line
from common.json_files import digest
from common.settings import Settings, default_of, hints_of
from multitask.adapters import PAL, Adapter, LoRA
from multitask.combiners.base import Combiner
from multitask.combiners.epo import EPO
from multitask.combiners.famo import FAMO
from multitask.combiners.gradvac import GradVac
from multitask.combiners.gramian import (
    IMTLG,
    AlignedMTL,
    CAGrad,
    DualProj,
    FairGrad,
    NashMTL,
    UPGrad,
)
from multitask.combiners.mgda import MGDA
from multitask.combiners.pareto_mtl import ParetoMTL
from multitask.combiners.pcgrad import PCGrad
from multitask.combiners.sum import LinearScalarization, Sum
from multitask.combiners.uncertainty import Uncertainty
from multitask.optimizer import AdamW, Constant, Linear, LrSchedule, Optimizer
from multitask.regularizers import Distillation, Proximal, RDrop, Regularizer, Smart
from multitask.sampling import (
    Annealed,
    FirstThenJoint,
    Hybrid,
    Individual,
    Joint,
    Proportional,
    RoundRobin,
    Sampler,
    Schedule,
    SquareRoot,
    Temperature,
    Uniform,
)
from tasks import TASKS, TaskOptions, objectives, protocols
from tasks.objectives import Objective
from tasks.protocols import Protocol

Owners = dict[str, dict[str, list[type[Settings]]]]  # setting -> role -> methods that have it
UserMethods = Iterable[type[Settings]]


@dataclass(frozen=True)
class Role:
    """A part of a configuration: the base class of its methods, and the built-in methods.

    The first method is the default; None in the list means that the part is optional, and `absent`
    is then the name for none. Methods of packages that depend on this one are given as
    `module:Class` and imported only when needed.
    """

    base: type[Settings] | str
    methods: tuple[type[Settings] | str | None, ...]
    absent: str = "none"


ROLES: dict[str, Role] = {
    "sampling": Role(
        Sampler, (RoundRobin, Hybrid, Annealed, Proportional, SquareRoot, Temperature, Uniform)
    ),
    "schedule": Role(Schedule, (Joint, Individual, FirstThenJoint)),
    "combiner": Role(
        Combiner,
        (
            *(Sum, PCGrad, EPO, LinearScalarization, ParetoMTL, Uncertainty, MGDA),
            *(CAGrad, UPGrad, DualProj, IMTLG, AlignedMTL, FairGrad, NashMTL, GradVac),
            FAMO,
        ),
    ),
    "objective": Role(
        Objective,
        (
            None,
            *(objectives.SCL, objectives.LS, objectives.EPO, objectives.CL),
            *(objectives.LaCon, objectives.LaConFusion, objectives.LEAM, objectives.LSAN),
            objectives.Projection,
            "pretrain.objectives:SimCSE",
            "pretrain.objectives:NLI",
            "pretrain.objectives:Pairs",
            "pretrain.objectives:Ranking",
            "pretrain.objectives:Triplet",
            "pretrain.objectives:SuperLoss",
            "pretrain.objectives:SupCon",
            "pretrain.objectives:ClassTriplet",
            "pretrain.objectives:NPair",
        ),
        absent="ce",  # the cross-entropy of the tasks
    ),
    "projection_head": Role(
        "pretrain.projection_heads:ProjectionHead",
        tuple(
            f"pretrain.projection_heads:{one}Projection" for one in ("No", "Linear", "Nonlinear")
        ),
    ),
    "adapter": Role(Adapter, (None, LoRA, PAL)),
    "regularizers": Role(Regularizer, (Smart, RDrop, Proximal, Distillation)),
    "protocol": Role(
        Protocol,
        (
            *(protocols.AllFiles, protocols.FewShots, protocols.HeldOutTenth),
            *(protocols.CappedClasses, protocols.FewPerClass, protocols.Imbalanced),
        ),
    ),
    "optimizer": Role(Optimizer, (AdamW,)),
    "lr_schedule": Role(LrSchedule, (Linear, Constant)),
    "tasks": Role(TaskOptions, tuple(TASKS.values())),
}


def loaded(method: type[Settings] | str) -> type[Settings]:
    """Return the class of a method; import it if it is given as `module:Class`."""
    if not isinstance(method, str):
        return method
    module, _, name = method.partition(":")
    return getattr(import_module(module), name)


@cache
def built_in(role: str) -> dict[str, type[Settings]]:
    """Return the built-in methods of a role by name, the default first."""
    found = [loaded(one) for one in ROLES[role].methods if one is not None]
    return {one.name: one for one in found}


def bases(role: str) -> tuple[type[Settings], ...]:
    """Return the base classes of the methods of a role."""
    further = ("pretrain.objectives:PretrainObjective",) if role == "objective" else ()
    return tuple(loaded(one) for one in (ROLES[role].base, *further))


def role_of(method: type[Settings]) -> str | None:
    """Return the role of a method by its base class; None for any other class."""
    for role in ROLES:
        if issubclass(method, bases(role)) and method.name:
            return role
    return None


def methods(role: str, user_methods: UserMethods = ()) -> dict[str, type[Settings]]:
    """Return the methods of a role by name, including the user's own methods in `user_methods`."""
    own = {one.name: one for one in user_methods if role_of(one) == role}
    return {**built_in(role), **own}


def is_default(role: str, method: Settings) -> bool:
    """Return whether a method is the default of a role."""
    return method.name == next(iter(built_in(role)))


@cache
def owners(user_methods: tuple[type[Settings], ...] = ()) -> Owners:
    """Return each setting of methods by its name in flags, with its methods by role."""
    found: Owners = {}
    for role in ROLES:
        if role == "tasks":
            continue
        for method in methods(role, user_methods).values():
            for key in method.by_key():
                found.setdefault(key, {}).setdefault(role, []).append(method)
    return found


def defaults_of(user_methods: tuple[type[Settings], ...] = ()) -> Mapping[str, Any]:
    """Return the default of each setting, from the first method of the table that has it."""
    first = {key: next(iter(by_role.values()))[0] for key, by_role in owners(user_methods).items()}
    found = {key: default_of(method.by_key()[key]) for key, method in first.items()}
    return {key: value for key, value in found.items() if value is not MISSING}


NAME = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)


def load_methods(file: str) -> tuple[type[Settings], ...]:
    """Execute a Python file and return its methods; raise RunError if it fails or has none."""
    path = Path(file)
    check_regular(path, RunError)
    if path.suffix != ".py" or not path.exists():
        raise RunError(f"--use: expected a Python file, found {file}")
    name = f"used_{path.stem}_{digest(path)[:12]}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None, "a file that ends in .py has a loader"
    assert spec.loader is not None, "a file that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # data classes look up the types of their fields there
    try:
        spec.loader.exec_module(module)
        methods = methods_of(module)
        for one in methods:
            hints_of(one)
    except (Exception, SystemExit) as error:  # a user's code may raise anything
        shown = f"{type(error).__name__}: {error}"
        raise RunError(one_line(f"--use {file}: expected methods, found {shown}")) from error
    if not methods:
        raise RunError(f"--use {file}: expected a class of a method, found none")
    check_names(methods)
    return methods


def methods_of(module: ModuleType) -> tuple[type[Settings], ...]:
    """Return the methods that a module itself defines."""
    classes = [one for one in vars(module).values() if isinstance(one, type)]
    mine = [one for one in classes if one.__module__ == module.__name__]
    return tuple(one for one in mine if issubclass(one, Settings) and role_of(one))


def check_names(methods: UserMethods) -> None:
    """Raise SettingsError for an invalid name, or one that another method of the role has."""
    seen: dict[tuple[str, str], type[Settings]] = {}
    for one in methods:
        role = role_of(one)
        if role is None:
            line = f'expected a name, class {one.__name__}(..., name="..."), found none'
            raise SettingsError(line)
        if not NAME.fullmatch(one.name):
            expected = "a name of lower-case letters, digits and hyphens"
            raise SettingsError(f"{role}: expected {expected}, found {one.name!r}")
        if one.name in built_in(role):
            line = f"{role}: expected another name than {one.name}, which is built in"
            raise SettingsError(line)
        if seen.setdefault((role, one.name), one) is not one:
            raise SettingsError(f"{role}: expected one method {one.name}, found two")


def source_of(method: type[Settings]) -> Path | None:
    """Return the file of a method's class; None for an interactive session."""
    try:
        found = inspect.getsourcefile(method)
    except (OSError, TypeError):
        return None
    return Path(found) if found and Path(found).is_file() else None


def sources(methods: UserMethods) -> dict[str, str]:
    """Return the checksums of methods by file name; without a file, of the code by class name."""
    found: dict[str, str] = {}
    for one in methods:
        file = source_of(one)
        name, checksum = (file.name, digest(file)) if file else (one.__qualname__, code_of(one))
        if found.setdefault(name, checksum) != checksum:
            raise RunError(f"use: expected files of different names, found two of name {name}")
    return found


def code_of(method: type[Settings]) -> str:
    """Return a checksum of the compiled functions and plain values of a class without a file."""

    def plain(value: Any) -> Any:
        if isinstance(value, CodeType):
            return value.co_code, value.co_names, [plain(one) for one in value.co_consts]
        if isinstance(value, property):
            return plain(value.fget)
        function = getattr(value, "__func__", value)
        if isinstance(code := getattr(function, "__code__", None), CodeType):
            return plain(code), repr(function.__defaults__)
        if isinstance(value, frozenset):
            return sorted(map(repr, value))  # the order of a set differs between processes
        return repr(value) if isinstance(value, int | float | str | tuple) else None

    own = {key: one for key, one in vars(method).items() if not key.startswith("__")}
    values = sorted((key, plain(one)) for key, one in own.items())
    return hashlib.sha256(repr(values).encode()).hexdigest()


def check_use(stored: Mapping[str, str], methods: UserMethods) -> None:
    """Raise RunError if a file of methods of a stored run is missing or has changed."""
    here = sources(methods)
    for name, checksum in stored.items():
        # Older versions stored no checksum of a class without a file.
        if name in here and checksum in ("", here[name]):
            continue
        if name.endswith(".py"):
            found = f"another one, {here[name][:12]}" if name in here else "none"
            expected = f"--use {name} with checksum {checksum[:12]}, whose methods the run has"
        else:
            found = "another one" if name in here else "none"
            expected = f"the method {name} of a Python session, with which the run began"
        raise RunError(f"expected {expected}, found {found}")
