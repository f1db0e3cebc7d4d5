"""Typed settings, checked on creation and shown in flags, JSON and docs.

A method is a class whose annotated fields are its settings:

    class TemperatureSampling(Sampler, name="temperature"):
        '''Sample tasks with probability proportional to size^(1/temperature).'''

        temperature: Positive = setting(5.0, help="...")

It becomes a frozen data class. msgspec checks types and ranges. This module does not import torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache, partial
from inspect import get_annotations
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta, inspect

from common.errors import SettingsError, is_unsafe
from common.suggestions import suggestion

PACKAGES = (
    *("cli", "serving", "studies", "reports", "ensemble", "pretrain"),
    *("multitask", "tasks", "losses", "minbert", "common"),
)
MANY = 1_000_000
Count = Annotated[int, Meta(ge=1, le=MANY)]
NonNegativeInt = Annotated[int, Meta(ge=0, le=MANY)]
Positive = Annotated[float, Meta(gt=0, le=MANY)]
NonNegative = Annotated[float, Meta(ge=0, le=MANY)]
AtLeastOne = Annotated[float, Meta(ge=1, le=MANY)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Ratio = Annotated[float, Meta(gt=0, le=1)]  # above 0
Part = Annotated[float, Meta(gt=0, lt=1)]  # above 0 and below 1
Cosine = Annotated[float, Meta(ge=-1, le=1)]
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Name = Annotated[str, Meta(pattern=r"\S", description="a name")]


def setting(
    default: Any = MISSING,
    *,
    help: str = "",
    metavar: str | None = None,
    factory: Any = MISSING,
    source: str | None = None,
    **more: Any,
) -> Any:
    """Define a field: its default, the default's source, and its text in `--help` and the docs.

    `more` are further properties: `modes`, the modes that have the setting, and those of its flag,
    which cli/settings_flags.py reads: `group` of the help, `common` (shown without --help-all),
    `flag` (False: none; BY_HAND: added by the modes), `path` (a file or folder), `several`
    (values), `of_text` (parses the typed text) and, for options of tasks, `shared`.
    """
    metadata = {"help": help, "metavar": metavar, "source": source, **more}
    return field(default=default, default_factory=factory, metadata=metadata)


def source_of_module(name: str) -> tuple[str, bytes] | None:
    """Return name and content of the file of a user's module in Python; None for other modules."""
    if name.partition(".")[0] in PACKAGES:
        return None
    file = Path(getattr(sys.modules.get(name), "__file__", None) or "")
    return (file.name, file.read_bytes()) if file.suffix == ".py" and file.is_file() else None


class Settings:
    """Base class of settings, whose fields are checked when an object is created.

    `name` is the method's name for users. In flags, JSON and keywords of a configuration, `prefix`
    precedes the name of each field. `__source__` has name and content of the file of a user's class
    when the class was made, since the file may change later; None for a class without a file.
    """

    name: ClassVar[str] = ""
    prefix: ClassVar[str] = ""
    __source__: ClassVar[tuple[str, bytes] | None] = None
    if TYPE_CHECKING:
        # Otherwise a type checker would require `default=` in each field.
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

        def __init__(self, *values: Any, **settings: Any) -> None: ...

    def __init_subclass__(cls, *, name: str = "", prefix: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.name, cls.prefix = name, prefix or cls.prefix
        cls.__source__ = source_of_module(cls.__module__)
        for key, hint in get_annotations(cls).items():
            base = cls.__bases__[0]
            known = getattr(base, "__dataclass_fields__", {})
            if "ClassVar" not in str(hint) and key not in known and hasattr(base, key):
                line = f"class {cls.__name__}: {key}: expected another name for a setting"
                raise SettingsError(f"{line}, found one that {base.__name__} already has")
        # A class that adds no settings reuses the data class of its only base: creating data
        # classes takes most of the import time.
        hints = get_annotations(cls).values()
        adds = any("ClassVar" not in str(hint) for hint in hints) or len(cls.__bases__) > 1
        if adds or not is_dataclass(cls):
            dataclass(frozen=True)(cls)

    def __post_init__(self) -> None:
        for key, one in self.by_key().items():
            value = convert(key, hints_of(type(self))[one.name], getattr(self, one.name))
            object.__setattr__(self, one.name, value)
        for fault in self.faults():
            raise SettingsError(fault)

    def __setattr__(self, key: str, value: Any) -> None:
        found = f"found {type(self).__name__}.{key} = {short_repr(value)}"
        raise SettingsError(
            f"expected settings that do not change after they are created, {found}; what a method "
            "remembers belongs in the object that its `build` returns"
        )

    def faults(self) -> Iterable[str]:
        """Return messages about settings of this object that contradict each other."""
        return ()

    @classmethod
    def by_key(cls) -> Mapping[str, Field[Any]]:
        """Return the fields by their names in flags and JSON."""
        return fields_by_key(cls)

    def values(self) -> dict[str, Any]:
        """Return the settings by their names in flags and JSON."""
        return {key: getattr(self, one.name) for key, one in self.by_key().items()}

    def other_than_defaults(self) -> dict[str, Any]:
        """Return the settings by their names in flags and JSON that are not defaults."""
        known, values = self.by_key(), self.values()
        return {key: value for key, value in values.items() if value != default_of(known[key])}


# `Settings.by_key` of a class, which is asked for often.
fields_by_key: Callable[[Any], Mapping[str, Field[Any]]] = cache(
    lambda cls: MappingProxyType({cls.prefix + one.name: one for one in fields(cls)})
)
# The type of each field of a class, with its range.
hints_of: Callable[[Any], dict[str, Any]] = cache(partial(get_type_hints, include_extras=True))


def default_of(one: Field[Any]) -> Any:
    """Return the default of a field, or MISSING."""
    return one.default if one.default_factory is MISSING else one.default_factory()


def required(cls: type[Settings]) -> Iterator[str]:
    """Return the names in flags of the settings without a default."""
    return (key for key, one in cls.by_key().items() if default_of(one) is MISSING)


def convert(name: str, hint: Any, value: Any) -> Any:
    """Convert a value to its type; raise SettingsError with one line if that is impossible.

    Lists can replace tuples, integers can replace floats, and NumPy numbers can replace Python's.
    Strings must be printable: they are shown, and become parts of file names.
    """
    value = plain(value)
    if isinstance(value, set | frozenset):
        raise SettingsError(f"{name}: expected {expected(hint)}, found a set, which has no order")
    if (text := next(unprintable(value), None)) is not None:
        raise SettingsError(f"{name}: expected a printable text, found {short_repr(text)}")
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError:
        keys, hint, part = wrong_part(hint, value)
        raise SettingsError(": ".join([name, *keys, mismatch(hint, part)])) from None


def plain(value: Any) -> Any:
    """Convert NumPy numbers and arrays, also inside containers, to Python's."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {plain(key): plain(one) for key, one in value.items()}
    if isinstance(value, range) or type(value) in (list, tuple):
        return (tuple if type(value) is tuple else list)(map(plain, value))
    return value


def unprintable(value: Any) -> Iterator[str]:
    """Yield the strings in a value that are unsafe for a terminal."""
    if isinstance(value, str):
        if any(map(is_unsafe, value)):
            yield value
    elif isinstance(value, Mapping):
        for pair in value.items():
            yield from unprintable(pair)
    elif isinstance(value, Sequence):
        for one in value:
            yield from unprintable(one)


def wrong_part(hint: Any, value: Any) -> tuple[list[str], Any, Any]:
    """Return the innermost part of a value that its type rejects, as (keys, type, part)."""
    for one in alternatives(hint):
        for key, inner, part in parts(one, value):
            if not accepts(inner, part):
                keys, inner, part = wrong_part(inner, part)
                return [*key, *keys], inner, part
    return [], hint, value


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or any other type itself."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def parts(hint: Any, value: Any) -> list[tuple[tuple[str, ...], Any, Any]]:
    """Return the parts of a mapping or a sequence, as (keys, expected type, part).

    The keys are one for a value of a mapping, else none.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if is_mapping(hint) and isinstance(value, dict):
        keys = [((), arguments[0], key) for key in value]
        return keys + [((shown_key(key),), arguments[1], one) for key, one in value.items()]
    if origin is tuple and isinstance(value, list | tuple):
        every = arguments[-1] is ...
        each = arguments[:1] * len(value) if every else arguments
        pairs = zip(each, value, strict=True) if len(each) == len(value) else ()
        return [((), inner, part) for inner, part in pairs]
    return []


def accepts(hint: Any, value: Any) -> bool:
    """Return whether a value can be converted to a type."""
    try:
        msgspec.convert(value, hint)
    except (msgspec.ValidationError, UnicodeError):
        return False
    return True


def mismatch(hint: Any, value: Any) -> str:
    """Return what was expected and found, with a suggestion for a misspelt name."""
    several = [get_origin(one) is tuple for one in alternatives(hint) if one is not NoneType]
    if isinstance(value, str) and all(several):
        return f"expected a list, such as [{short_repr(value)}], found only the string"
    line = f"expected {expected(hint)}, found {short_repr(value)}"
    return line + suggestion(value, names_of(hint))


def names_of(hint: Any) -> tuple[str, ...]:
    """Return the choices of a Literal type, or of the Literal types inside a union or tuple."""
    names: list[str] = []
    for one in alternatives(hint):
        if get_origin(one) is Literal:
            names += map(str, get_args(one))
        elif get_origin(one) is tuple:
            names += names_of(get_args(one)[0])
    return tuple(names)


def expected(hint: Any) -> str:
    """Describe the values of a type in words; `None` is not mentioned."""
    kinds = [one for one in alternatives(hint) if one is not NoneType]
    by_task = [one for one in kinds if is_mapping(one) and get_args(one)[1] is not Any]
    plain_kinds = dict.fromkeys(expected_one(one) for one in kinds if one not in by_task)
    one_for_all = ", or ".join(plain_kinds)
    values = [get_args(one)[1] for one in by_task]
    each = ["a mapping" if is_mapping(one) else expected(one) for one in values]
    named = ["one by task" if one == one_for_all else f"{one} by task" for one in each]
    return ", or ".join([*plain_kinds, *named])


def is_mapping(hint: Any) -> bool:
    return get_origin(hint) in (dict, Mapping)


def expected_one(hint: Any) -> str:
    for one in get_args(hint)[1:]:
        if isinstance(one, Meta) and one.description is not None:
            return one.description
    if is_mapping(hint):
        return "a mapping"
    kind = inspect.type_info(hint)
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return span(kind)
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(filter(None, map(str, get_args(hint))))}"
    if isinstance(kind, inspect.BoolType):
        return "True or False"
    if isinstance(kind, inspect.TupleType | inspect.VarTupleType):
        several = expected(get_args(hint)[0]).replace("one of", "some of")
        for one in ("whole number", "number", "name", "text"):
            several = several.replace(f"a {one}", f"{one}s")
        count = f"{len(kind.item_types)} " if isinstance(kind, inspect.TupleType) else ""
        return f"{count}{several}"
    return "a text" if kind == inspect.StrType() else "another kind of value"


def span(kind: inspect.IntType | inspect.FloatType) -> str:
    """Describe a number and its range."""
    what = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
    if kind.ge is not None and kind.le is not None:
        return f"{what} from {brief(kind.ge)} to {brief(kind.le)}"
    limits = (("above", kind.gt), ("from", kind.ge), ("below", kind.lt), ("at most", kind.le))
    bounds = [f"{word} {brief(limit)}" for word, limit in limits if limit is not None]
    return f"{what} {' and '.join(bounds)}".rstrip()


def brief(number: float | None) -> str:
    """Format a number, without the .0 of a whole number."""
    return str(int(number)) if number is not None and number == int(number) else str(number)


def shown_key(key: Any) -> str:
    """Format the key of a mapping for a message: as it is, unless it is long or blank."""
    text = str(key)
    return text if text.strip() and len(text) <= 60 else short_repr(text)


def short_repr(value: Any) -> str:
    """Format a value for a message; shorten it if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
