"""Several tasks of one file, a column of labels each.

--data-file tickets.csv --text text --labels topic "tags:type=multi-label,separator=;"
--data-file tickets.yaml
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import one_line
from common.repeats import repeated
from common.settings import short
from tasks.described import (
    FILES,
    OPTIONS,
    Description,
    checked_description,
    pairs,
    read_description,
)
from tasks.label_kinds import infer_kind, infer_kind_of_lists
from tasks.own_types.base import DescriptionError, TaskDescription
from tasks.own_types.multi_label import SEPARATOR
from tasks.tables import list_columns, rows_by_name
from tasks.task_description import NAME, name_fault
from tasks.task_inference import complete_description, in_folder
from tasks.text_files import DataError

OF_TABLE = (*FILES, "text", "group", "id", "quotes")  # keys of the file, not of a label column
OF_LABEL = tuple(one.name for one in fields(Description) if one.name not in (*OF_TABLE, "label"))
LONGEST_NAME = 32


class LabelColumn(NamedTuple):
    """A column of labels: the name of its task, the column, and keys of its description."""

    name: str
    column: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A file with several columns of labels; `options` are its keys, such as `train` and `text`."""

    options: Mapping[str, Any]
    labels: tuple[LabelColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(label.name for label in self.labels)


def table_tasks(
    file: str | Path,
    *,
    text: str | Sequence[str] = (),
    labels: Sequence[str] | Mapping[str, Any] = (),
    **options: Any,
) -> list[TaskDescription]:
    """Tasks for `RunConfig(tasks=...)`, one for each column of labels of a file.

    The rows of a single file are split by a hash: no row, equal text or group is on two sides.
    Files for dev and test are used as they are.

    Args:
        file: a table or a folder, as for `task`; or a YAML file with all the keys below.
        text: the column of the texts; two columns for pairs.
        labels: the columns of labels, such as `"topic"` or `"tags:type=multi-label,separator=;"`,
            or `"NAME=COLUMN"` to name the task; or a mapping of columns to keys of a description,
            such as `{"topic": {}, "stars": {"type": "regression"}}`.
            Without a type, it is inferred from the column, as docs/own-data.md describes.
        options: `group`, a column whose equal values stay together; `id`, a column; `dev` and
            `test`, files that are used as they are; `quotes`.

    Raises:
        SettingsError, DescriptionError, DataError: with a message of one line.
    """
    if hasattr(file, "columns"):  # of pandas
        found = f"a {type(file).__name__}: use df.to_csv(FILE, index=False)"
        raise DescriptionError(f"file: expected the name of a file or a folder, found {found}")
    texts = list(text) if isinstance(text, list | tuple) else [text]
    options = {key: str(one) if isinstance(one, Path) else one for key, one in options.items()}
    table = make_table(str(file), texts, labels, options)
    return complete_table(table)[0]


def make_table(file: str, text: Sequence[Any], labels: Any, options: Mapping[str, Any]) -> Table:
    """Return a table from its keys, or from a YAML file with them; raise DescriptionError."""
    given: dict[str, Any] = {"text": list(text), "labels": labels, **options}
    given = {key: value for key, value in given.items() if value not in (None, (), [], "")}
    if file.endswith((".yaml", ".yml")):
        if given:
            raise DescriptionError(f"{file}: expected {next(iter(given))} in it, found it outside")
        given = read_description(Path(file))
    else:
        given["train"] = os.path.expanduser(file)
    for key in ("text", "labels"):
        if not given.get(key):
            raise DescriptionError(
                f"{given['train']}: {key}: expected a column or more, found none"
            )
    for key in given:
        if key not in (*OF_TABLE, "labels"):
            known = ", ".join((*OF_TABLE, "labels"))
            raise DescriptionError(f"{file}: expected keys of {known}, found {key!r}")
    found = tuple(labels_of(given.pop("labels")))
    if given.get("group") in [label.column for label in found]:
        line = f"expected another column than the labels, found {given['group']!r}"
        raise DescriptionError(f"group: {line}")
    for key, names in (
        ("columns", [label.column for label in found]),
        ("names of tasks", [label.name for label in found]),
    ):
        for name in repeated(names):
            raise DescriptionError(f"labels: expected different {key}, found {name!r} twice")
    return Table(given, found)


def labels_of(given: Any) -> Iterator[LabelColumn]:
    """Yield the columns of labels in a list of texts, or in a mapping of columns to keys."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping):
        for column, keys in given.items():
            keys = {"type": keys} if isinstance(keys, str) else keys or {}
            if not isinstance(column, str) or not isinstance(keys, Mapping):
                found = f"found {short(column)}: {short(keys)}"
                raise DescriptionError(f"labels: expected columns with keys such as type, {found}")
            own = {key: value for key, value in keys.items() if key != "name"}
            yield label_of(str(keys["name"]) if "name" in keys else None, column, own)
        return
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        found = short(given)
        raise DescriptionError(f"labels: expected names of columns, as texts, found {found}")
    for text in given:
        head, *rest = OPTIONS.split(text, maxsplit=1)
        name, sign, column = head.partition("=")
        named = sign and NAME.fullmatch(name)
        options: dict[str, Any] = {}
        for key, value in pairs(head, rest[0] if rest else ""):
            if key in options:
                raise DescriptionError(f"{head}: {key}: expected one value, found two")
            options[key] = value
        yield label_of(name, column, options) if named else label_of(None, head, options)


def label_of(name: str | None, column: str, options: dict[str, Any]) -> LabelColumn:
    """Return a column of labels with a valid name; raise DescriptionError for other keys."""
    if not column.strip():
        raise DescriptionError("labels: expected the name of a column, found none")
    name = name_of_column(column) if name is None else name
    if fault := name_fault(name):
        raise DescriptionError(f"labels: {column}: {fault}; write NAME={column}")
    for key in options:
        if key not in OF_LABEL:
            place = "for the whole file" if key in OF_TABLE else f"one of {', '.join(OF_LABEL)}"
            raise DescriptionError(f"labels: {column}: expected {place}, found the key {key!r}")
    return LabelColumn(name, column, options)


def name_of_column(column: str) -> str:
    """Return a column as a name: in lower case, without accents, other characters as hyphens."""
    plain = unicodedata.normalize("NFKD", column.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9_]+", "-", plain).strip("-_")[:LONGEST_NAME]


def complete_table(table: Table) -> tuple[list[TaskDescription], list[str]]:
    """Return the complete descriptions of a table's tasks, and a line for each inferred type.

    Raise DescriptionError, or DataError with the file and line of invalid data.
    """
    files = {key: table.options[key] for key in FILES if table.options.get(key)}
    train = str((in_folder(str(files["train"])) if len(files) == 1 else files)["train"])
    if not Path(train).exists():
        raise DataError(f"{train}: expected a table with {', '.join(table.names)}, found none")
    common = table.options
    texts = common["text"] if isinstance(common["text"], list) else [common["text"]]
    unknown = [one.column for one in table.labels if "type" not in one.options]
    cells = cells_of(Path(train), unknown, table.options.get("quotes", "yes") in ("yes", True))
    lists = list_columns(Path(train), unknown)
    described, lines = [], []
    for name, column, options in table.labels:
        if "type" not in options:
            if "separator" in options:
                options = {"type": "multi-label", **options}
            else:
                try:
                    if column in lists:
                        found = infer_kind_of_lists(cells[column])
                    else:
                        found = infer_kind(cells[column], len(texts))
                except ValueError as error:
                    raise DataError(one_line(f"{train}: column {column!r}: {error}")) from error
                options = {"type": found.type, **found.options, **options}
                lines.append(f"{name}: {found.type}: column {column!r} has {found.reason}")
        checked = checked_description(name, {**common, "label": column, **options})
        described.append(complete_description(name, checked))
    return described, lines


def cells_of(file: Path, columns: Sequence[str], quotes: bool) -> dict[str, Counter[str]]:
    """Return how often each cell of some columns occurs, without blank ones.

    Lists in JSONL and Parquet files are cells with `SEPARATOR` between the labels.
    """
    found: dict[str, Counter[str]] = {column: Counter() for column in columns}
    if columns:
        lists = dict.fromkeys(columns, SEPARATOR)
        for _, row in rows_by_name(file, columns, quoted_tabs=quotes, lists=lists):
            for column in columns:
                if cell := row[column].strip():
                    found[column][cell] += 1
    return found
