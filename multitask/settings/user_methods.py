"""A user's own methods: the file they come from, their names, and the checksums of their code.

No torch is imported here.
"""

from __future__ import annotations

import dis
import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from common.atomic_files import check_regular
from common.errors import RunError, SettingsError, one_line
from common.json_files import digest
from common.settings import Settings, hints_of, short_repr
from multitask.settings.methods import UserMethods, built_in, role_of

NAME = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)


def load_methods(file: str) -> tuple[type[Settings], ...]:
    """Execute a Python file and return its methods; raise RunError if it fails or has none."""
    path = Path(file)
    check_regular(path, RunError)
    if path.suffix != ".py" or not path.is_file():
        found = file if path.is_file() else f"no file {file}"
        raise RunError(f"--use: expected a Python file, found {found}")
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
    """Return the checksums of methods by file name; without a file, of the code by class name.

    Of the classes that functions of a file make, which may differ, each has its own checksum.
    """
    found: dict[str, str] = {}
    for one in methods:
        if not isinstance(one, type):
            raise SettingsError(f"use: expected classes of methods, found {short_repr(one)}")
        file = source_of(one)
        name, checksum = (file.name, digest(file)) if file else (one.__qualname__, code_of(one))
        if file and "<locals>" in one.__qualname__:
            name = f"{name}:{role_of(one)}:{one.name}"
            checksum = hashlib.sha256((checksum + code_of(one)).encode()).hexdigest()
        if found.setdefault(name, checksum) != checksum:
            raise RunError(f"use: expected files of different names, found two of name {name}")
    return found


def code_of(method: type[Settings]) -> str:
    """Return a checksum of the compiled functions and plain values of a class without a file.

    It covers the numbers, texts, tuples and functions without a file that these functions read as
    global variables or those of an enclosing function, but none that they also set.
    """
    own = {key: one for key, one in vars(method).items() if not key.startswith("__")}
    codes = [one.__code__ for one in map(function_of, own.values()) if one is not None]
    changed = set[str]().union(*map(names_set, codes))
    seen = set[tuple[str, str]]()  # functions may read each other

    def plain(value: Any) -> Any:
        if isinstance(value, CodeType):
            return value.co_code, value.co_names, [plain(one) for one in value.co_consts]
        if (function := function_of(value)) is not None:
            named = outside(function)
            code = plain(function.__code__)
            return code, repr(function.__defaults__), *([named] if named else [])
        if isinstance(value, frozenset):
            return sorted(map(repr, value))  # the order of a set differs between processes
        if isinstance(value, tuple):
            return [plain(one) for one in value]
        return repr(value) if isinstance(value, int | float | str) else None

    def outside(function: FunctionType) -> list[Any]:
        found, known = [], variables_of(function)
        for name in sorted(known.keys() - changed - names_set(function.__code__)):
            value, place = inspect.unwrap(known[name]), (function.__qualname__, name)
            if place in seen or is_installed(value):
                continue
            seen.add(place)
            if isinstance(value, FunctionType | int | float | str | tuple | frozenset):
                found.append((name, plain(value)))
        return found

    values = sorted((key, plain(one)) for key, one in own.items())
    return hashlib.sha256(repr(values).encode()).hexdigest()


def function_of(value: Any) -> FunctionType | None:
    """Return the Python function of a function, method or property; None for other values."""
    inner = getattr(value, "fget", None) or getattr(value, "__func__", value)
    found = inspect.unwrap(inner)
    return found if isinstance(found, FunctionType) else None


def is_installed(value: Any) -> bool:
    """Return whether a value is a function of a module with a file, which no function made."""
    if not isinstance(value, FunctionType) or value.__closure__ is not None:
        return False
    return Path(value.__code__.co_filename).is_file()


def variables_of(function: FunctionType) -> dict[str, Any]:
    """Return what a function reads: global variables, and those of an enclosing function."""
    read = names_in(function.__code__, "LOAD_GLOBAL") & function.__globals__.keys()
    found = {name: function.__globals__[name] for name in read}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        with suppress(ValueError):  # not set yet
            found[name] = cell.cell_contents
    found.pop("__class__", None)
    return found


def names_set(code: CodeType) -> set[str]:
    """Return the variables outside of a function that it, or one inside it, sets."""
    enclosing = names_in(code, "STORE_DEREF") & {*code.co_freevars}
    return names_in(code, "STORE_GLOBAL") | enclosing


def names_in(code: CodeType, operation: str) -> set[str]:
    """Return the names on which a function, or one inside it, does an operation of bytecode."""
    mine = {one.argval for one in dis.get_instructions(code) if one.opname == operation}
    inside = (one for one in code.co_consts if isinstance(one, CodeType))
    return mine.union(*(names_in(one, operation) for one in inside))


def check_use(stored: Mapping[str, str], methods: UserMethods) -> None:
    """Raise RunError if a file of methods of a stored run is missing or has changed."""
    here = sources(methods)
    for name, checksum in stored.items():
        if here.get(name) == checksum:
            continue
        if (file := name.partition(":")[0]).endswith(".py"):
            found = f"another one, {here[name][:12]}" if name in here else "none"
            expected = (
                f"--use {file} with checksum {checksum[:12]}, whose methods the run has "
                "(in Python, use=(CLASS,))"
            )
        else:
            found = "another one" if name in here else "none"
            expected = f"the method {name} of a Python session, with which the run began"
        raise RunError(f"expected {expected}, found {found}")
