"""The methods of each part of a configuration: the built-in ones in a table, and a user's own.

A new method needs a class and an entry in this table. No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from pkgutil import resolve_name
from typing import Any

from common.settings import Settings, default_of
from multitask.combiners.base import Combiner
from multitask.combiners.epo import EPO
from multitask.combiners.famo import FAMO
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
from multitask.combiners.pcgrad import PCGrad
from multitask.combiners.sum import LinearScalarization, Sum
from multitask.combiners.uncertainty import Uncertainty
from multitask.optimizer import AdamW, Constant, Linear, LrSchedule, Optimizer
from multitask.regularizers import Distillation, Regularizer, Smart
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
            *(Sum, PCGrad, EPO, LinearScalarization, Uncertainty, MGDA),
            *(CAGrad, UPGrad, DualProj, IMTLG, AlignedMTL, FairGrad, NashMTL),
            FAMO,
        ),
    ),
    "objective": Role(
        Objective,
        (
            None,
            *(objectives.SCL, objectives.LS, objectives.ContrastiveEPO, objectives.CL),
            *(objectives.LaCon, objectives.LaConFusion, objectives.LEAM, objectives.LSAN),
            objectives.Projection,
            "pretrain.objectives:SimCSE",
            "pretrain.objectives:NLI",
            "pretrain.objectives:Pairs",
            "pretrain.objectives:Ranking",
            "pretrain.objectives:Triplet",
            "pretrain.class_objectives:SuperLoss",
            "pretrain.class_objectives:SupCon",
            "pretrain.class_objectives:ClassTriplet",
            "pretrain.class_objectives:NPair",
        ),
        absent="ce",  # the cross-entropy of the tasks
    ),
    "projection_head": Role(
        "pretrain.projection_heads:ProjectionHead",
        tuple(
            f"pretrain.projection_heads:{one}Projection" for one in ("No", "Linear", "Nonlinear")
        ),
    ),
    "regularizers": Role(Regularizer, (Smart, Distillation)),
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
METHOD_ROLES = tuple(role for role in ROLES if role != "tasks")  # fields that hold methods


PRETRAINING = "pretrain.objectives:PretrainObjective"  # base of those of pre-training


def loaded(method: type[Settings] | str) -> type[Settings]:
    """Return the class of a method; import it if it is given as `module:Class`."""
    return resolve_name(method) if isinstance(method, str) else method


@cache
def built_in(role: str) -> dict[str, type[Settings]]:
    """Return the built-in methods of a role by name, the default first."""
    found = [loaded(one) for one in ROLES[role].methods if one is not None]
    return {one.name: one for one in found}


def bases(role: str) -> tuple[type[Settings], ...]:
    """Return the base classes of the methods of a role."""
    further = (PRETRAINING,) if role == "objective" else ()
    return tuple(loaded(one) for one in (ROLES[role].base, *further))


def pretrains(method: type) -> bool:
    """Return whether a class is an objective of pre-training."""
    return issubclass(method, loaded(PRETRAINING))


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
