"""Parsers of the text of a command-line argument, from the type of its value."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from common.errors import SettingsError
from common.settings import alternatives, convert


def typed(hint: Any) -> Callable[[str], Any]:
    """Return the parser of an argument that is not a setting; its errors are one-line messages."""
    read = reader(hint)

    def parse(text: str) -> Any:
        try:
            return convert("", hint, read(text))
        except SettingsError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(": ")) from error

    return parse


def reader(hint: Any) -> Callable[[str], Any]:
    """Return a function that parses the text of a flag: a number, or a name and a number."""
    kinds = (int, float) if {int, float} & set(scalars(hint)) else ()

    def number(text: str) -> Any:
        for kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
        return text

    def pair(text: str) -> tuple[str, Any]:
        name, sign, value = text.rpartition("=")
        return (name, number(value)) if name or not sign else ("", text)

    return pair if takes_names(hint) else number


def scalars(hint: Any) -> Iterator[Any]:
    """Yield the scalar types in a type; for values by name, the types of the values."""
    for one in alternatives(hint):
        origin = get_origin(one)
        if origin is Annotated or origin is tuple:
            yield from scalars(get_args(one)[0])
        elif takes_names(one):
            yield from scalars(get_args(one)[1])
        else:
            yield one


def takes_names(hint: Any) -> bool:
    """Return whether a setting accepts values by name."""
    return any(get_origin(one) in (dict, Mapping) for one in alternatives(hint))


def name_and_path(text: str) -> tuple[str | None, Path]:
    """Split `NAME=PATH`; a text that is the path of an existing file or folder is not split."""
    name, sign, rest = text.partition("=")
    return (None, Path(text)) if not sign or Path(text).exists() else (name, Path(rest))
