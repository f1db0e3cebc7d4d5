"""The parts of a run that are methods, and the user's own ones.

A method is known as soon as its class exists: the built-in ones are imported here, and those of a
user by `--use FILE.py`, or by defining the class in Python.
"""

import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

from common.errors import RunError, SettingsError
from common.settings import Settings
from losses.objectives import TrainingObjective
from multitask.combiners import Combiner
from multitask.optimizer import AdamW
from multitask.regularizers import Regularizer
from multitask.sampling import Sampler, Schedule
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
    path = Path(file).resolve()
    if path.suffix != ".py" or not path.is_file():
        raise SettingsError(f"--use {file}: there is no such Python file")
    name = f"used_{path.stem}_{crc32(str(path).encode()):08x}"  # two may have one name
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # data classes look up the types of their fields there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a user's code may raise anything
        raise RunError(f"--use {file}: {type(error).__name__}: {error}") from error
