"""Descriptions of tasks on a user's own files, in a flag or a YAML file.

reviews=reviews.csv:type=classification,text=comment,label=stars
my=pairs.parquet:type=similarity,text=left,text=right,label=score,low=0,high=5
reviews=reviews.yaml
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from common.errors import SettingsError
from common.settings import Name, Settings, short
from common.yaml_files import read_yaml
from tasks.own_types import TYPES
from tasks.own_types.base import Blank, Bound, DescriptionError, TypeName
from tasks.task_description import OF_SOME_TYPES, name_fault
from tasks.text_files import to_text

FILES = ("train", "dev", "test")
SEVERAL = ("text", "label")  # columns; in a flag, a key for each
OPTIONS = re.compile(r":(?=[a-z_]+=)")  # the end of a file's name
COMMA = re.compile(r"(?<!\\),")  # commas in a value are escaped with a backslash


class Description(Settings):
    """The keys of a description, as the user writes them."""

    type: TypeName
    text: tuple[Name, ...]  # columns
    train: Name  # file; also that of dev and test if they have none
    label: tuple[Name, ...] = ()  # columns, as many as the type has
    dev: Name | None = None
    test: Name | None = None  # file, with or without labels
    id: Name | None = None  # column; default: row numbers
    labels: tuple[str, ...] = ()  # the classes in order; default: those of the first file
    low: Bound | None = None  # of the similarities; default: those of the first file
    high: Bound | None = None
    separator: Annotated[str, Meta(min_length=1)] | None = None  # of several labels; default: |
    blank: Blank | None = None  # a row without labels has none (default), or unknown ones
    pair: Literal["bi", "joint"] = "bi"  # encode the texts separately, or as one sequence
    quotes: Literal["yes", "no"] | bool = "yes"  # no: ordinary characters between tabs
    group: Name | None = None  # column; rows with the same value are in the same split

    def faults(self) -> Iterator[str]:
        own = TYPES[self.type]
        if len(self.text) not in own.texts:
            single = 1 in own.texts
            wanted = "one text column, or two for pairs" if single else "two text columns"
            yield f"text: expected {wanted}, found {len(self.text)}"
        elif len(set(self.text)) < len(self.text):
            yield f"text: expected two different columns, found {self.text[0]!r} twice"
        for column in self.label:
            if column in self.text:
                yield f"label: expected another column than the text, found {column!r}"
        if self.group in self.label:
            yield f"group: expected another column than the label, found {self.group!r}"
        if fault := own.label_fault(len(self.label)):
            yield f"label: {fault}"
        for key in OF_SOME_TYPES:
            if getattr(self, key) not in ((), None) and key not in own.keys:
                yield f"{key}: expected another type, found {self.type}"
        if self.pair == "joint" and len(self.text) != 2:
            yield "pair: expected two text columns for joint, found one"
        if self.group is not None and self.dev is not None:
            yield "group: expected a single file that is split, found also a file for dev"


def parse_description(text: str) -> dict[str, Any]:
    """Return the keys of `NAME=FILE:key=value,...` or `NAME=FILE.yaml`; raise DescriptionError."""
    name, sign, rest = text.partition("=")
    if not sign:
        raise DescriptionError(f"expected NAME=FILE:type=...,text=...,label=..., found {text!r}")
    if fault := name_fault(name):
        raise DescriptionError(f"NAME=FILE: {fault}")
    file, *options = OPTIONS.split(rest, maxsplit=1)
    if not file:
        raise DescriptionError(f"{name}: expected a file after =, found none")
    if file.endswith((".yaml", ".yml")):
        if options:
            raise DescriptionError(f"{name}: expected only {file}, found {options[0]!r} after it")
        return checked_description(name, read_description(Path(file)))
    description: dict[str, Any] = {"train": os.path.expanduser(file)}
    for key, value in pairs(name, options[0] if options else ""):
        if key in SEVERAL:
            description.setdefault(key, []).append(value)
        elif key in description:
            raise DescriptionError(f"{name}: {key}: expected one value, found two")
        else:
            description[key] = os.path.expanduser(value) if key in FILES else value
    return checked_description(name, description)


def pairs(name: str, options: str) -> Iterator[tuple[str, str]]:
    """Yield keys and values; a backslash before a comma makes it part of a value."""
    for part in filter(None, COMMA.split(options)):
        key, sign, value = part.replace("\\,", ",").partition("=")
        if not sign or not value:
            raise DescriptionError(f"{name}: expected key=value, found {part!r}")
        yield key, value


def read_description(file: Path) -> dict[str, Any]:
    """Return the description in a file; the paths in it are relative to its folder."""
    found = read_yaml(file, "a task", DescriptionError, words_are_texts=True)
    if not isinstance(found, dict) or "train" not in found:
        raise DescriptionError(
            f"{file}: expected keys such as train, type, text, label, found none"
        )
    for key in found.keys() & {*FILES}:
        if found[key] is None and key != "train":
            continue
        if not isinstance(found[key], str):
            raise DescriptionError(f"{file}: {key}: expected a file, found {short(found[key])}")
        found[key] = str(file.parent / os.path.expanduser(found[key]))
    return found


def checked_description(name: str, description: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description in a uniform form; raise DescriptionError in one line if invalid."""
    keys = [one.name for one in fields(Description)]
    for key in description:
        if key not in keys:
            known = ", ".join(one for one in keys if one != "train")
            raise DescriptionError(f"{name}: expected keys of {known}, found {key!r}")
    found = {key: normalise_value(name, key, value) for key, value in description.items()}
    if missing := [key for key in ("train", "type", "text") if key not in found]:
        raise DescriptionError(f"{name}: needs {', '.join(missing)}")
    try:
        described = Description(**found)
    except SettingsError as error:
        raise DescriptionError(f"{name}: {error}") from error
    except RecursionError:  # YAML has aliases
        line = "expected texts and lists of texts, found a list inside itself"
        raise DescriptionError(f"{name}: {line}") from None
    return described.to_json()


def normalise_value(name: str, key: str, value: Any) -> Any:
    """Convert a value of a flag or a YAML file to a list of texts or a number."""
    if key in ("low", "high") and isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    if key not in (*SEVERAL, "labels"):
        return value
    if isinstance(value, str):
        value = [value] if key in SEVERAL else value.split("|")
    if isinstance(value, list):
        if any(isinstance(one, bool) for one in value):  # true and false in YAML
            raise DescriptionError(f"{name}: {key}: expected texts, in quotes, found {value}")
        texts = [to_text(one) if isinstance(one, int | float) else one for one in value]
        strips = key == "labels"  # the name of a column may begin or end with a space
        value = [one.strip() if strips and isinstance(one, str) else one for one in texts]
    return value
