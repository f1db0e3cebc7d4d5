"""A task over somebody's own files, as a flag or a YAML file describes it. No torch is imported.

reviews=reviews.csv:type=classification,text=comment,label=stars
my=pairs.parquet:type=similarity,text=left,text=right,label=score,low=0,high=5
reviews=reviews.yaml
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from minbert.errors import UserError
from minbert.files import check_regular
from minbert.typed import fits
from tasks import TASK_NAMES

TYPES = ("classification", "similarity")
FILES = ("train", "dev", "test")
NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
# Names of built-in tasks, of their prediction files and of what stands beside tasks in metrics.
TAKEN = (*TASK_NAMES, "para", "overall", "overall_plain_mean")
# What PyTorch's dictionary of modules, in which the heads are, calls its own.
OF_MODULES = (
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
KEYS = {
    "type": "classification or similarity",
    "text": "column of the text; two of them for pairs",
    "label": "column of the label",
    "dev": "file of dev; without it a part of the first file",
    "test": "file of test, with labels or without",
    "id": "column of the examples' ids; without it their rows count",
    "labels": "the classes in their order, a|b|c; without it those of the first file",
    "low": "the least similarity; without it the least one of the first file",
    "high": "the greatest similarity",
    "pair": "bi (a tower a text) or joint (one sequence for both)",
    "quotes": "yes, or no where quotes in a tab-separated file mean nothing",
}
OPTIONS = re.compile(r":(?=[a-z]+=)")  # where a file's name ends
LARGE = 1e9
COMMA = re.compile(r"(?<!\\),")  # in a name it is escaped with a backslash


def is_taken(name: str) -> bool:
    """Whether something else has the name."""
    return name in TAKEN or f" {name} " in OF_MODULES


class DescriptionError(UserError):
    """A description of a task that cannot be used."""

    status = 2


@dataclass(frozen=True)
class Described:
    """Nothing is left open: all that a run's folder keeps of the task, and needs to predict.

    `labels` are the classes as the files write them, in the order of their numbers; similarities go
    from `low` to `high`. Files are CSV, TSV, JSONL, Parquet or a folder of Arrow files.
    """

    name: str
    type: str
    train: str
    texts: tuple[str, ...]
    label: str
    dev: str | None = None
    test: str | None = None
    test_labels: bool = False
    id: str | None = None
    labels: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0
    joint: bool = False
    quotes: bool = True

    def to_json(self) -> dict[str, Any]:
        """Without the name, by which it is found."""
        found = asdict(self)
        del found["name"]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}


def meaning(described: Mapping[str, Any]) -> dict[str, Any]:
    """What two descriptions have alike whose heads say the same: all but where the data is."""
    kept = ("type", "texts", "labels", "low", "high", "joint")
    return {key: described.get(key) for key in kept}


def from_json(name: str, content: Mapping[str, Any]) -> Described:
    """What `to_json` wrote; UserError where it is anything else: a folder may come from anywhere.

    The name becomes a part of files' names.
    """
    hints = get_type_hints(Described)
    wanted = {field.name for field in fields(Described)} - {"name"}
    if not NAME.fullmatch(name) or is_taken(name):
        raise UserError(f"own_tasks: expected a task's name, found {name[:60]!r}")
    for key in sorted(wanted ^ content.keys()):
        found = "none" if key in wanted else "it"
        raise UserError(f"own_tasks: {name}: {key}: expected the settings of a task, found {found}")
    for key, value in content.items():
        if not fits(value, hints[key]):
            raise UserError(f"own_tasks: {name}: {key}: found {str(value)[:60]!r}")
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    described = Described(name, **values)
    if described.type not in TYPES or len(described.texts) not in (1, 2):
        raise UserError(f"own_tasks: {name}: expected a type of {', '.join(TYPES)}, 1 or 2 texts")
    if described.type == "classification" and len(set(described.labels)) < 2:
        raise UserError(f"own_tasks: {name}: labels: expected two or more")
    if described.type == "similarity" and not -LARGE < described.low < described.high < LARGE:
        raise UserError(f"own_tasks: {name}: expected low below high, both finite")
    return described


def parse_description(text: str) -> dict[str, Any]:
    """`NAME=FILE:key=value,...` or `NAME=FILE.yaml` as its keys; DescriptionError."""
    name, sign, rest = text.partition("=")
    if not sign or not NAME.fullmatch(name):
        raise DescriptionError(
            "expected NAME=FILE:type=...,text=...,label=..., the name in small letters, "
            f"found {text!r}"
        )
    if is_taken(name):
        raise DescriptionError(f"{name}: expected another name, for this one is taken")
    file, *options = OPTIONS.split(rest, maxsplit=1)
    if not file:
        raise DescriptionError(f"{name}: expected a file after =, found none")
    if file.endswith((".yaml", ".yml")):
        if options:
            raise DescriptionError(f"{name}: expected {file} alone, found {options[0]!r} after it")
        return checked_description(name, read_yaml(Path(file)))
    given: dict[str, Any] = {"train": os.path.expanduser(file)}
    for key, value in pairs(name, options[0] if options else ""):
        if key == "text":
            given.setdefault("text", []).append(value)
        elif key in given:
            raise DescriptionError(f"{name}: {key}: expected it once, found it twice")
        else:
            given[key] = os.path.expanduser(value) if key in FILES else value
    return checked_description(name, given)


def pairs(name: str, options: str) -> Iterator[tuple[str, str]]:
    """Keys and values; a backslash before a comma makes it a part of a value."""
    for part in filter(None, COMMA.split(options)):
        key, sign, value = part.replace("\\,", ",").partition("=")
        if not sign or not value:
            raise DescriptionError(f"{name}: expected key=value, found {part!r}")
        yield key, value


def read_yaml(file: Path) -> dict[str, Any]:
    """The description in a file; other files that it names lie beside it."""
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


def checked_description(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The keys of a description in one form, of any kind of file; DescriptionError in one line."""
    for key in given:
        if key not in KEYS and key != "train":
            raise DescriptionError(f"{name}: expected keys of {', '.join(KEYS)}, found {key!r}")
    text, labels = given.get("text", []), given.get("labels", [])
    given = given | {
        "text": [text] if isinstance(text, str) else text,
        "labels": labels.split("|") if isinstance(labels, str) else labels,
    }
    for key in ("text", "labels"):
        if not isinstance(given[key], list):
            raise DescriptionError(f"{name}: {key}: expected a list, found {given[key]!r}")
        if not all(isinstance(one, str | int | float) for one in given[key]) or any(
            isinstance(one, bool) for one in given[key]
        ):  # YAML reads yes and no as truth values
            raise DescriptionError(f"{name}: {key}: expected texts, in quotes, found {given[key]}")
        given[key] = [str(one) for one in given[key]]
    given["labels"] = [label.strip() for label in given["labels"]]
    for text in given["text"]:
        if not text or not text.isprintable():
            raise DescriptionError(f"{name}: text: expected the name of a column, found {text!r}")
    if given.get("type") not in TYPES:
        found = given.get("type", "none")
        raise DescriptionError(f"{name}: type: expected {' or '.join(TYPES)}, found {found}")
    similar = given["type"] == "similarity"
    if len(given["text"]) not in ((2,) if similar else (1, 2)):
        wanted = "two text columns" if similar else "one text column, or two of pairs"
        raise DescriptionError(f"{name}: expected {wanted}, found {len(given['text'])}")
    for key in ("label", "train", "dev", "test", "id"):
        if key not in given and key not in ("label", "train"):
            continue
        if not isinstance(given.get(key), str) or not given[key].isprintable():
            raise DescriptionError(f"{name}: {key}: expected a name, found {given.get(key)!r}")
    for key in ("low", "high"):
        if key in given:
            given[key] = to_number(name, key, given[key])
    for key, owner in (("labels", not similar), ("low", similar), ("high", similar)):
        if given.get(key) and not owner:
            raise DescriptionError(f"{name}: {key}: expected another type, found {given['type']}")
    for key, choices in (("pair", ("bi", "joint")), ("quotes", ("yes", "no", True, False))):
        if key in given and given[key] not in choices:
            raise DescriptionError(
                f"{name}: {key}: expected {choices[0]} or {choices[1]}, found {given[key]}"
            )
    if given.get("pair") == "joint" and (similar or len(given["text"]) != 2):
        raise DescriptionError(f"{name}: pair=joint: expected a classification of pairs")
    return given


def to_number(name: str, key: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not abs(number) < LARGE:
        raise DescriptionError(f"{name}: {key}: expected a number, found {value!r}")
    return number
