"""Typed settings, checked when an object is made, and shown in flags, JSON and docs.

A method is a class whose annotated fields are its settings:

    class Temperature(Sampler, name="temperature"):
        '''Sample tasks with probability proportional to size^(1/temperature).'''

        temperature: Positive = setting(5.0, help="...")

It becomes a frozen data class. msgspec checks types and ranges; its messages say what is expected.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from common.errors import SettingsError

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
Name = Annotated[str, Meta(min_length=1)]

Method = TypeVar("Method", bound="Settings")


def setting(default: Any = MISSING, *, factory: Any = MISSING, **about: Any) -> Any:
    """Define a field: its default and the properties of its flag and of its line in the docs.

    They are `help`, `metavar`, `source` of the default, `modes` that have the setting, `group` of
    the help, `common` (shown without --help-all), `flag` (False: none, or one that a mode adds;
    `--config` has every setting) and, for options of tasks, `shared`.
    """
    return field(default=default, default_factory=factory, metadata=about)


class Settings:
    """Base class of settings, whose fields are checked when an object is made.

    A class with a `name` is a method: users choose it by this name, also if a file of theirs
    defines it. `prefix` precedes the names of its fields in flags.
    """

    name: ClassVar[str] = ""
    prefix: ClassVar[str] = ""
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init__(self, *values: Any, **settings: Any) -> None: ...  # of each data class

    def __init_subclass__(cls, *, name: str = "", prefix: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.name, cls.prefix = "", prefix or cls.prefix
        family = next(one for one in cls.__mro__[::-1] if one not in (object, Settings))
        known: Any = methods(family)
        if name and is_users(cls) and name in known and not is_users(known[name]):
            raise SettingsError(f"class {cls.__name__}: {name} is built in; rename it")
        dataclass(frozen=True)(cls)
        cls.name = name  # last, so that no class that fails here is known

    def __post_init__(self) -> None:
        for key, hint in hints_of(type(self)).items():
            value = convert(self.prefix + key, hint, getattr(self, key))
            object.__setattr__(self, key, value)
        for fault in self.faults():
            raise SettingsError(fault)

    def faults(self) -> Iterable[str]:
        """Return messages about settings of this object that contradict each other."""
        return ()

    def to_json(self) -> dict[str, Any]:
        """Return the name of the method, and its settings."""
        found = {"name": self.name} if self.name else {}
        return found | {one.name: as_json(getattr(self, one.name)) for one in fields(self)}


def is_users(cls: type) -> bool:
    """Return whether a class of a method comes from outside this project."""
    around = __name__.removesuffix("common.settings")  # the package of an installed wheel, or ""
    ours = [f"{around}{one}." for one in ("losses", "multitask", "pretrain", "tasks")]
    return not cls.__module__.startswith(tuple(ours))


def hints_of(cls: Any) -> dict[str, Any]:
    """Return the type of each field of a class, with its range."""
    types = get_type_hints(cls, include_extras=True)
    return {one.name: types[one.name] for one in fields(cls)}


def methods(base: type[Method]) -> dict[str, type[Method]]:
    """Return the methods that derive from a class, also those of a user, by name."""
    found = {base.name: base} if base.name else {}
    for one in base.__subclasses__():
        found |= methods(one)
    return found


def build(key: str, base: type[Method], value: Any) -> Method:
    """Return the method that a setting chooses: by name, as a mapping with `name`, or an object.

    Raise SettingsError for an unknown name or setting, and for a value that is not allowed.
    """
    if isinstance(value, base):
        return value
    given = dict(value) if isinstance(value, Mapping) else {"name": value}
    name, known = given.pop("name", None), methods(base)
    if not isinstance(name, str) or name not in known:
        names = f"choose from {', '.join(known)} (--use adds yours)"
        raise SettingsError(f"{key}: no method {short(name)}; {names}")
    cls, own = known[name], {one.name: one for one in fields(known[name])}
    if unknown := given.keys() - own:
        names = ", ".join(own) or "none"
        raise SettingsError(f"{key} {name}: no setting {min(unknown)!r}; it has {names}")
    for needed in own:
        if needed not in given and default_of(own[needed]) is MISSING:
            raise SettingsError(f"{key} {name}: needs {cls.prefix}{needed}")
    return cls(**given)


def default_of(one: Field[Any]) -> Any:
    """Return the default of a field, or MISSING."""
    return one.default if one.default_factory is MISSING else one.default_factory()


def convert(name: str, hint: Any, value: Any) -> Any:
    """Convert a value to its type; raise SettingsError with one line if that is impossible.

    Texts, as of flags, can replace numbers, lists replace tuples, and NumPy's numbers Python's.
    """
    kinds = scalars(hint)
    if bool in kinds and value in ("yes", "no"):
        return value == "yes"
    given = plain(value, numbers=float in kinds and str not in kinds)
    try:
        return msgspec.convert(given, hint, strict=False)
    except (msgspec.ValidationError, UnicodeError) as error:
        line = str(error).replace(" matching", ", got").partition(", got ")[0].replace("`", "")
        line = f"Expected one of {', '.join(several)}" if (several := choices_of(hint)) else line
        raise SettingsError(f"{name}: {line}{described(hint)}, found {short(value)}") from None


def plain(value: Any, numbers: bool = False) -> Any:
    """Convert NumPy numbers, arrays and paths, also inside containers, to Python's and texts.

    With `numbers`, texts such as `.5`, which are no numbers of JSON, become numbers.
    """
    if isinstance(value, os.PathLike) or (isinstance(value, str) and value.startswith("~/")):
        return os.path.expanduser(value)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {plain(key): plain(one, numbers) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(one, numbers) for one in value]
    if numbers and isinstance(value, str) and not value.isdigit():
        with suppress(ValueError):
            return float(value)
    return value


def as_json(value: Any) -> Any:
    """Return a setting, or its default, as JSON; a missing default is None."""
    return None if value is MISSING else json.loads(json.dumps(value, default=Settings.to_json))


def takes(hint: Any, *containers: Any) -> bool:
    """Return whether a setting accepts one of these containers: tuple, or Mapping."""
    return any(get_origin(one) in containers for one in (hint, *get_args(hint)))


def scalars(hint: Any) -> set[Any]:
    """Return the types of one value of a setting: without unions, containers and ranges."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal or not parts:
        return {hint}
    if origin in (tuple, Mapping, Annotated):
        parts = parts[1:] if origin is Mapping else parts[:1]
    return set().union(*map(scalars, parts))


def choices_of(hint: Any) -> tuple[str, ...]:
    """Return the choices of one value of a setting."""
    literals = [one for one in scalars(hint) if get_origin(one) is Literal]
    return tuple(str(one) for literal in literals for one in get_args(literal))


def described(hint: Any) -> str:
    """Return the description of a text with a pattern, after a comma; empty without one."""
    about = getattr(hint, "description", None)
    return f", {about}" if about else "".join(map(described, get_args(hint)))


def short(value: Any) -> str:
    """Format a value for a message; shorten it if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
