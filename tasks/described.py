"""Descriptions of tasks on a user's own files, in a flag or a YAML file. No torch is imported.

reviews=reviews.csv:type=classification,text=comment,label=stars
my=pairs.parquet:type=similarity,text=left,text=right,label=score,low=0,high=5
reviews=reviews.yaml
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from common.atomic_files import check_regular
from common.errors import SettingsError, UserError
from common.settings import Name, Positive, Settings, convert, expected, hints_of, required
from tasks.own_types import TYPES
from tasks.own_types.base import DescriptionError
from tasks.readers import to_number
from tasks.registry import TASK_NAMES

if TYPE_CHECKING:
    TypeName = str
else:
    TypeName = Literal[tuple(TYPES)]
Bound = Annotated[float, Meta(gt=-1e9, lt=1e9)]  # of the similarity scale
FILES = ("train", "dev", "test")
SEVERAL = ("text", "label")  # columns; in a flag, a key for each
Blank = Literal["none", "unknown"]
Folds = Annotated[int, Meta(ge=3, le=50)]
Fold = Annotated[int, Meta(ge=1, le=50)]  # number of a fold
# Fields that are stored only if they are set.
ADDED = (
    *("separator", "blank", "mean", "deviation", "class_weights"),
    *("table", "group", "fold", "folds"),
)
NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
# Names of built-in tasks, of their prediction files and of other keys of the metrics.
RESERVED = (*TASK_NAMES, "para", "overall", "overall_plain_mean")
# Attributes of nn.ModuleDict, which holds the heads: a task cannot have these names.
MODULE_ATTRIBUTES = (
    " add_module apply bfloat16 buffers call_super_init children clear compile cpu cuda double"
    " dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter"
    " get_submodule half ipu items keys load_state_dict modules mtia named_buffers"
    " named_children named_modules named_parameters parameters pop register_backward_hook"
    " register_buffer register_forward_hook register_forward_pre_hook"
    " register_full_backward_hook register_full_backward_pre_hook register_module"
    " register_parameter register_state_dict_post_hook register_state_dict_pre_hook"
    " requires_grad_ set_extra_state set_submodule share_memory state_dict to to_empty train"
    " training type update values xpu zero_grad"
    " "
)
OPTIONS = re.compile(r":(?=[a-z]+=)")  # the end of a file's name
COMMA = re.compile(r"(?<!\\),")  # commas in a value are escaped with a backslash
OF_SOME_TYPES = tuple(dict.fromkeys(key for one in TYPES.values() for key in one.keys))
MEASURED = tuple(dict.fromkeys(key for one in TYPES.values() for key in one.measured))


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
    class_weights: dict[str, Positive] | None = None  # by class or label; default: 1
    pair: Literal["bi", "joint"] = "bi"  # encode the texts separately, or as one sequence
    quotes: Literal["yes", "no"] | bool = "yes"  # no: ordinary characters between tabs
    group: Name | None = None  # column; rows with the same value are in the same split

    def faults(self) -> Iterator[str]:
        own = TYPES[self.type]
        if len(self.text) not in own.texts:
            single = 1 in own.texts
            wanted = "one text column, or two for pairs" if single else "two text columns"
            yield f"text: expected {wanted}, found {len(self.text)}"
        if fault := own.label_fault(len(self.label)):
            yield f"label: {fault}"
        for key in OF_SOME_TYPES:
            if getattr(self, key) not in ((), None) and key not in own.keys:
                yield f"{key}: expected another type, found {self.type}"
        if self.pair == "joint" and not own.joint:
            yield f"pair: expected bi for {self.type}, found joint"
        if self.pair == "joint" and len(self.text) != 2:
            yield "pair: expected two text columns for joint, found one"
        if self.group is not None and self.dev is not None:
            yield "group: expected a single file that is split, found also a file for dev"


def is_reserved(name: str) -> bool:
    """Return whether a name is reserved."""
    return name in RESERVED or f" {name} " in MODULE_ATTRIBUTES


@dataclass(frozen=True)
class TaskDescription:
    """A complete description: all that a run's folder stores of a task and needs for prediction.

    `labels` are the classes as written in the files, in the order of their numbers. Similarities
    are from `low` to `high`. Several labels in a cell are separated by `separator`; a blank cell
    has none, or is skipped if `blank` is unknown. Without a column `label`, each of the `labels`
    has a column, or the order of the texts is the label. Numbers are standardised by `mean` and
    `deviation`. `class_weights` are factors of the loss by class or label, 1 for the others. Files
    are CSV, TSV, JSONL, Parquet or a folder of Arrow files.

    `table` has the label columns that share the split of the file, with the separator of their
    labels, "" for one label; rows with the same value in `group` stay together. Of `folds`, number
    `fold` is test and the next one dev.
    """

    name: str
    type: TypeName
    train: str
    texts: Annotated[tuple[str, ...], Meta(min_length=1, max_length=2)]
    label: str | None
    dev: str | None = None
    test: str | None = None
    test_labels: bool = False
    id: str | None = None
    labels: tuple[str, ...] = ()
    low: Bound = 0.0
    high: Bound = 1.0
    joint: bool = False
    quotes: bool = True
    separator: str | None = None
    blank: Blank | None = None
    class_weights: dict[str, Positive] | None = None
    table: Mapping[str, str] | None = None
    group: str | None = None
    fold: Fold | None = None
    folds: Folds | None = None
    mean: float | None = None
    deviation: float | None = None

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Return the columns of labels: one, one for each of several labels, or none."""
        return (self.label,) if self.label else self.labels

    def to_json(self) -> dict[str, Any]:
        """Return the fields without the name, which is the key of the description."""
        stored = {
            field.name: getattr(self, field.name)
            for field in fields(self)[1:]
            if field.name not in ADDED or getattr(self, field.name) != field.default
        }
        return {k: list(one) if isinstance(one, tuple) else one for k, one in stored.items()}


def output_signature(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that define what a head predicts, without the location of the data."""
    kept = ("type", "texts", "labels", "low", "high", "joint", *MEASURED)
    return {key: described.get(key) for key in kept}


def from_json(name: str, content: Mapping[str, Any]) -> TaskDescription:
    """Read the output of `to_json`; raise UserError for other content, as folders are not trusted.

    The name is checked too, because it becomes part of file names.
    """
    own = TYPES.get(str(content.get("type")))
    some = (*OF_SOME_TYPES, *MEASURED)
    others = {key for key in some if key in ADDED and own and key not in own.keys + own.measured}
    known = {field.name for field in fields(TaskDescription)[1:]} - others
    if not NAME.fullmatch(name) or is_reserved(name):
        raise UserError(f"own_tasks: expected a task's name, found {name[:60]!r}")
    for key in sorted((known - {*ADDED}) - content.keys() | content.keys() - known):
        found = "none" if key in known else "an unknown key"
        raise UserError(f"own_tasks: {name}: {key}: expected the settings of a task, found {found}")
    for key, hint in hints_of(TaskDescription).items():
        if key in content:
            try:
                convert(key, hint, content[key])
            except SettingsError as error:
                raise UserError(f"own_tasks: {name}: {error}") from error
    described = msgspec.convert({**content, "name": name}, TaskDescription)
    if fault := stored_fault(described) or split_fault(described):
        raise UserError(f"own_tasks: {name}: {fault}")
    return described


def split_fault(described: TaskDescription) -> str | None:
    """Return what is wrong with the split of a stored description, or None."""
    if described.table is None:
        keys = ("group", "fold", "folds")
        used = [key for key in keys if getattr(described, key) is not None]
        return f"{used[0]}: expected also a table" if used else None
    for column in described.label_columns:
        if column not in described.table:
            return f"table: expected column {column!r} in it"
    if (described.fold is None) != (described.folds is None):
        return "fold and folds: expected both or none"
    if described.folds is None or described.fold is None:
        return None
    if described.fold > described.folds:
        return f"fold: expected a number up to {described.folds}, found {described.fold}"
    if described.dev is not None or described.test is not None:
        return "folds: expected a single file"
    return None


def stored_fault(described: TaskDescription) -> str | None:
    """Return what is wrong with a stored description, or None."""
    own, texts = TYPES[described.type], len(described.texts)
    if texts not in own.texts:
        return f"texts: expected {' or '.join(map(str, own.texts))}, found {texts}"
    if fault := own.label_fault(1 if described.label else len(described.labels)):
        return f"label: {fault}"
    if described.joint and (texts != 2 or not own.joint):
        return "joint: expected false, found true"
    return own.fault(described)


def parse_description(text: str) -> dict[str, Any]:
    """Return the keys of `NAME=FILE:key=value,...` or `NAME=FILE.yaml`; raise DescriptionError."""
    name, sign, rest = text.partition("=")
    if not sign or not NAME.fullmatch(name):
        raise DescriptionError(
            "expected NAME=FILE:type=...,text=...,label=..., the name in lower case, "
            f"found {text!r}"
        )
    if is_reserved(name):
        raise DescriptionError(f"{name}: expected another name: this one is reserved")
    file, *options = OPTIONS.split(rest, maxsplit=1)
    if not file:
        raise DescriptionError(f"{name}: expected a file after =, found none")
    if file.endswith((".yaml", ".yml")):
        if options:
            raise DescriptionError(f"{name}: expected only {file}, found {options[0]!r} after it")
        return checked_description(name, read_yaml(Path(file)))
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


def read_yaml(file: Path) -> dict[str, Any]:
    """Return the description in a file; the paths in it are relative to its folder."""
    import yaml

    check_regular(file, DescriptionError)
    try:
        found = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise DescriptionError(f"{file}: expected a task in YAML: {error}") from error
    if not isinstance(found, dict) or "train" not in found:
        raise DescriptionError(
            f"{file}: expected keys such as train, type, text, label, found none"
        )
    for key in FILES:
        if isinstance(found.get(key), str):
            found[key] = str(file.parent / os.path.expanduser(found[key]))
    return found


def checked_description(name: str, description: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description in a uniform form; raise DescriptionError in one line if invalid."""
    keys = Description.by_key()
    for key in description:
        if key not in keys:
            known = ", ".join(one for one in keys if one != "train")
            raise DescriptionError(f"{name}: expected keys of {known}, found {key!r}")
    found = {key: normalise_value(name, key, value) for key, value in description.items()}
    try:
        for key in required(Description):
            if key not in found:
                hint = hints_of(Description)[key]
                raise SettingsError(f"{key}: expected {expected(hint)}, found none")
        values = Description(**found).values()
    except SettingsError as error:
        raise DescriptionError(f"{name}: {error}") from error
    return {key: list(one) if isinstance(one, tuple) else one for key, one in values.items()}


def normalise_value(name: str, key: str, value: Any) -> Any:
    """Convert a value of a flag or a YAML file to a list of texts or a number."""
    if key in ("low", "high") and isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    if key == "class_weights":
        return weights_by_class(name, value)
    if key not in (*SEVERAL, "labels"):
        return value
    if isinstance(value, str):
        value = [value] if key in SEVERAL else value.split("|")
    if isinstance(value, list):
        if any(isinstance(one, bool) for one in value):  # YAML reads yes and no so
            raise DescriptionError(f"{name}: {key}: expected texts, in quotes, found {value}")
        value = [str(one).strip() if isinstance(one, str | int | float) else one for one in value]
    return value


def weights_by_class(name: str, value: Any) -> Any:
    """Return weights by class from `fire=5|flood=2` or a mapping; raise DescriptionError."""
    if isinstance(value, dict):
        return {str(label): weight for label, weight in value.items()}
    found: dict[str, float] = {}
    for part in str(value).split("|"):
        label, sign, weight = part.rpartition("=")
        number = to_number(weight)
        if not sign or number is None or label in found:
            raise DescriptionError(
                f"{name}: class_weights: expected each class once, as in fire=5|flood=2, found "
                f"{part!r}; --class-weights balanced weights by numbers of examples"
            )
        found[label.strip()] = number
    return found
