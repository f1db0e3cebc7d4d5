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
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from common.atomic_files import check_regular
from common.errors import RunError, SettingsError, one_line
from common.run_files import CHECKPOINT_PARTS
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
        if role == "regularizers" and one.name in CHECKPOINT_PARTS:
            line = f"{role}: expected another name than {one.name}, which is a part of checkpoints"
            raise SettingsError(line)
        if one.name in built_in(role):
            line = f"{role}: expected another name than {one.name}, which is built in"
            raise SettingsError(line)
        if seen.setdefault((role, one.name), one) is not one:
            raise SettingsError(f"{role}: expected one method {one.name}, found two")


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those of the functions and classes inside it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from codes_in(one)


def sources(methods: UserMethods) -> dict[str, str]:
    """Return the checksums of methods by file name; without a file, of the code by class name.

    Of the classes that functions of a file make, which may differ, each has its own checksum.
    """
    found: dict[str, str] = {}
    for one in methods:
        if not isinstance(one, type) or not issubclass(one, Settings):
            raise SettingsError(f"use: expected classes of methods, found {short_repr(one)}")
        source = one.__source__
        name = source[0] if source else one.__qualname__
        checksum = hashlib.sha256(source[1]).hexdigest() if source else code_of(one)
        if source and "<locals>" in one.__qualname__:
            name = f"{name}:{role_of(one)}:{one.name}"
            checksum = hashlib.sha256((checksum + code_of(one)).encode()).hexdigest()
        if found.setdefault(name, checksum) != checksum:
            raise RunError(f"use: expected files of different names, found two of name {name}")
    return found


def code_of(method: type[Settings]) -> str:
    """Return a checksum of the compiled functions and plain values of a class without a file.

    It covers the bases without a file, and the numbers, texts, tuples, and functions and classes
    without a file that these functions read as global variables or those of an enclosing function,
    but none that they also set.
    """
    functions = [one for one in parts_of(method, set())[0] if isinstance(one, FunctionType)]
    changed = set[str]().union(*(names_set(one.__code__) for one in functions))
    return hashlib.sha256(repr(parts_of(method, changed)[1]).encode()).hexdigest()


def parts_of(method: type[Settings], changed: set[str]) -> tuple[list[Any], list[Any]]:
    """Return the classes and functions without a file that a class needs, and what is in each.

    They may refer to each other: each is listed once, and a reference is a place in the list.
    The variables `changed` are left out.
    """
    parts: list[Any] = [method]
    places = {id(method): 0}

    def place(part: Any) -> int:
        if id(part) not in places:
            places[id(part)] = len(parts)
            parts.append(part)
        return places[id(part)]

    def plain(value: Any) -> Any:
        if isinstance(value, CodeType):
            return value.co_code, value.co_names, [plain(one) for one in value.co_consts]
        if isinstance(value, frozenset):
            return sorted(map(repr, value))  # the order of a set differs between processes
        if isinstance(value, tuple):
            return [plain(one) for one in value]
        if isinstance(value, int | float | str):
            return repr(value)
        part = value if isinstance(value, type) else function_of(value)
        if part is None:
            return None
        return part.__qualname__ if is_installed(part) else place(part)

    def content(part: Any) -> list[Any]:
        if isinstance(part, type):
            listed = [plain(part.__bases__)]
            for key in sorted(vars(part)):
                value = vars(part)[key]
                if function := function_of(value):
                    listed.append((key, place(function)))
                elif not key.startswith("__"):
                    listed.append((key, plain(value)))
            return listed
        known, named = variables_of(part), part.__kwdefaults__ or {}
        read = [(name, plain(known[name])) for name in sorted(known.keys() - changed)]
        return [
            plain(part.__code__),
            plain(part.__defaults__),
            [(name, plain(named[name])) for name in sorted(named)],
            [(name, one) for name, one in read if one is not None],
        ]

    return parts, [content(one) for one in parts]  # `content` adds to the list


def function_of(value: Any) -> FunctionType | None:
    """Return the Python function of a function, method or property; None for other values."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, cached_property):
        value = value.func
    elif isinstance(value, classmethod | staticmethod | MethodType):
        value = value.__func__
    found = inspect.unwrap(value)
    return found if isinstance(found, FunctionType) else None


def is_installed(part: FunctionType | type) -> bool:
    """Return whether a module with a file, or Python, has a function or class, and none made it."""
    if isinstance(part, FunctionType):
        return part.__closure__ is None and Path(part.__code__.co_filename).is_file()
    if "<locals>" in part.__qualname__:
        return False
    module = sys.modules.get(part.__module__)
    file = Path(getattr(module, "__file__", None) or "")  # "<stdin>" is none
    return getattr(module, "__spec__", None) is not None or file.is_file()


def variables_of(function: FunctionType) -> dict[str, Any]:
    """Return what a function reads: global variables, and those of an enclosing function."""
    code, known = function.__code__, function.__globals__
    read = names_in(code, "LOAD_GLOBAL") | names_in(code, "LOAD_NAME") - {"__name__"}  # of a class
    found = {name: known[name] for name in read & known.keys()}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
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
    steps = (one for inner in codes_in(code) for one in dis.get_instructions(inner))
    return {one.argval for one in steps if one.opname == operation}


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
