"""Whether a value read from JSON is one of an annotated type."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin


def fits(value: Any, hint: Any) -> bool:
    """`hint` as `get_type_hints` gives it; lists stand for tuples, whole numbers for any.

    Texts have to be printable: they are shown, and are parts of files' names.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in arguments)
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            return False
        every = origin is list or arguments[-1] is ...
        each = arguments[:1] * len(value) if every else arguments
        return len(value) == len(each) and all(map(fits, value, each))
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            fits(key, arguments[0]) and fits(one, arguments[1]) for key, one in value.items()
        )
    if hint is NoneType:
        return value is None
    if isinstance(value, bool) or hint is bool:
        return isinstance(value, bool) and hint is bool
    if hint is float:
        return isinstance(value, int | float)
    return isinstance(value, hint) and (hint is not str or value.isprintable())


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
