"""The parts of a run that are methods, and the user's own ones.

A method is known as soon as its class exists: the built-in ones are imported here, and those of a
user by `--use FILE.py`, or by defining the class in Python.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from zlib import crc32

from common.errors import RunError, SettingsError
from common.settings import Settings
from losses.objectives import TrainingObjective
from multitask.combiners import Combiner
from multitask.optimizer import AdamW
from multitask.regularizers import Regularizer
from multitask.sampling import Sampler, Schedule
from tasks import TaskOptions
from tasks.protocols import Protocol

ROLES: dict[str, type[Settings]] = {
    "sampling": Sampler,
    "schedule": Schedule,
    "combiner": Combiner,
    "objective": TrainingObjective,
    "regularizers": Regularizer,
    "protocol": Protocol,
    "optimizer": AdamW,
}
# By name, since pretrain depends on this package.
import_module("tasks.lacon")
import_module("pretrain.objectives")


def load_methods(file: str) -> None:
    """Import a user's file, whose methods are then known by name.

    Raise SettingsError for another file, and RunError if its code fails.
    """
    path = Path(file)
    name = f"used_{path.stem}_{crc32(str(path.resolve()).encode()):08x}"  # two may have one name
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None or not path.is_file():
        raise SettingsError(f"--use {file}: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # data classes look up the types of their fields there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a user's code may raise anything
        raise RunError(f"--use {file}: {type(error).__name__}: {error}") from error
    classes = [one for one in vars(module).values() if isinstance(one, type)]
    if not any(issubclass(one, Settings) and one.__module__ == name for one in classes):
        bases = ", ".join(base.__name__ for base in (*ROLES.values(), TaskOptions))
        raise SettingsError(f"--use {file}: defines no method; derive a class from one of {bases}")
