"""A user's own methods: the file they come from, and their names.

No torch is imported here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from common.errors import RunError, SettingsError, one_line
from common.files import check_regular
from common.settings import Settings, hints_of, short_repr
from multitask.settings.methods import UserMethods, built_in, role_of
from tasks.task_description import name_fault

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)


def load_methods(file: str) -> tuple[type[Settings], ...]:
    """Execute a Python file and return its methods; raise RunError if it fails or has none."""
    path = Path(file)
    check_regular(path, RunError)
    if path.suffix != ".py" or not path.is_file():
        found = file if path.is_file() else f"no file {file}"
        raise RunError(f"--use: expected a Python file, found {found}")
    content = path.read_bytes()  # read once, so that it is what was executed
    name = f"used_{path.stem}_{hashlib.sha256(content).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None, "a file that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # data classes look up the types of their fields there
    try:
        exec(compile(content, str(path.resolve()), "exec", dont_inherit=True), vars(module))
        methods = methods_of(module)
        for one in methods:
            hints_of(one)
            one.__source__ = path.name, content
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
        if role == "tasks" and (fault := name_fault(one.name)):
            raise SettingsError(f"{role}: {fault}")
        if not isinstance(one.name, str) or not NAME.fullmatch(one.name):
            expected = "a name of lower-case letters, digits and hyphens"
            raise SettingsError(f"{role}: expected {expected}, found {one.name!r}")
        if one.name in built_in(role):
            line = f"{role}: expected another name than {one.name}, which is built in"
            raise SettingsError(line)
        if seen.setdefault((role, one.name), one) is not one:
            raise SettingsError(f"{role}: expected one method {one.name}, found two")


def sources(methods: UserMethods) -> dict[str, str]:
    """Return the checksums of the files of methods by file name.

    A method without a file, of a Python session, has its class name and the checksum of nothing.
    """
    found: dict[str, str] = {}
    for one in methods:
        if not isinstance(one, type) or not issubclass(one, Settings):
            raise SettingsError(f"use: expected classes of methods, found {short_repr(one)}")
        name, content = one.__source__ or (one.__qualname__, b"")
        checksum = hashlib.sha256(content).hexdigest()
        if found.setdefault(name, checksum) != checksum:
            raise RunError(f"use: expected files of different names, found two of name {name}")
    return found


def check_use(stored: Mapping[str, str], methods: UserMethods) -> None:
    """Raise RunError if a file of methods of a stored run is missing or has changed."""
    here = sources(methods)
    for name, checksum in stored.items():
        if here.get(name) == checksum:
            continue
        expected = f"the method {name} of a Python session, with which the run began"
        if name.endswith(".py"):
            expected = (
                f"--use {name} with checksum {checksum[:12]}, whose methods the run has "
                "(in Python, use=(CLASS,))"
            )
        found = f"another one, {here[name][:12]}" if name in here else "none"
        raise RunError(f"expected {expected}, found {found}")
