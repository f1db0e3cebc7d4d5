"""What a type of own tasks consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, NamedTuple
from unicodedata import category, normalize

from msgspec import Meta

from common.errors import SettingsError, UserError, is_unsafe
from common.later import nn
from common.settings import short
from tasks.kind import Kind
from tasks.predictions import PredictionFile
from tasks.registry import TargetType
from tasks.text_files import DataError

LabelsByLine = Iterator[tuple[int, str]]
LONGEST_LABEL = 1000
MISSING_REPRS = ("None", "nan", "<NA>", "NaT")  # of missing labels; the last two are of pandas
COUNTS = {0: "none", 2: "two"}
TypeName = Literal["classification", "similarity", "multi-label", "regression"]
Bound = Annotated[float, Meta(gt=-1e9, lt=1e9)]  # of the similarity scale
Blank = Literal["none", "unknown"]
ADDED = ("separator", "blank", "mean", "deviation", "group")  # stored only if they are set


class DescriptionError(UserError):
    """An invalid description of a task."""

    status = 2


@dataclass(frozen=True)
class TaskDescription:
    """A complete description: all that a run's folder stores of a task and needs for prediction.

    `labels` are the classes as written in the files, in the order of their numbers. Similarities
    are from `low` to `high`. Several labels in a cell are separated by `separator`; a blank cell
    has none, or is skipped if `blank` is unknown. Without a column `label`, each of the `labels`
    has a column. Numbers are standardised by `mean` and `deviation`. Files are CSV, TSV, JSONL
    or Parquet.

    Rows of a single file with the same value in `group` are in the same split. `split` is the rule
    by which the file is split.
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
    group: str | None = None
    split: Literal["hash"] = "hash"
    mean: float | None = None
    deviation: float | None = None

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Return the columns of labels: one, or one for each of several labels."""
        return (self.label,) if self.label else self.labels

    def to_json(self) -> dict[str, Any]:
        """Return the fields without the name, which is the key of the description."""
        stored = {
            field.name: getattr(self, field.name)
            for field in fields(self)[1:]
            if field.name not in ADDED or getattr(self, field.name) != field.default
        }
        return {k: list(one) if isinstance(one, tuple) else one for k, one in stored.items()}


class Parts(NamedTuple):
    """The parts of a task that depend on its type.

    `parse_label` reads a label of the task's files; targets have the NumPy type `target_type`. Rows
    with a label in `blank` are skipped. `indicators` are columns with a label each.
    """

    kind: Kind
    build_head: Callable[[int], nn.Module]
    output: PredictionFile
    parse_label: Callable[[str], Any]
    target_type: type
    blank: tuple[str, ...] = ("",)
    indicators: tuple[str, ...] = ()


def plain_cell(label: Any, options: Mapping[str, Any]) -> str | int | float:
    """Return a label as it is; raise SettingsError for one that is neither text nor number."""
    if not isinstance(label, str | int | float):
        raise SettingsError(f"labels: expected texts or numbers, found {short(label)}")
    return label


@dataclass(frozen=True)
class OwnType:
    """A type of own tasks, a value of the key `type`.

    `predicts` says what an example has: one class, a similarity, another number, or several labels.
    `main_metric`, which selects the best epoch, is that of its `Kind`. `texts` are the possible
    numbers of its texts, `label_columns` the largest number of columns with labels,
    and `keys` those keys of a description that not every type has; `measured` are further fields of
    a `TaskDescription`, which `complete` computes. `separator` is the default one of several labels
    in a cell.

    `complete(name, description, file, labels)` returns the fields of a `TaskDescription` that
    depend on the type; `labels` are (line, label) of the rows of the training file `file`. It
    raises DataError or DescriptionError. `fault(described)` returns what is wrong with a stored
    description, or None. `lines(described)` yields what the task predicts and notices about its
    labels. `build(described)` returns the parts of the task. `cell(label, options)` returns a label
    of a list from Python as the field of a file; it raises SettingsError.
    """

    predicts: TargetType
    main_metric: str
    texts: tuple[int, ...]
    keys: tuple[str, ...]
    complete: Callable[[str, Mapping[str, Any], str, LabelsByLine], dict[str, Any]]
    fault: Callable[[TaskDescription], str | None]
    lines: Callable[[TaskDescription], Iterator[str]]
    build: Callable[[TaskDescription], Parts]
    label_columns: int = 1
    measured: tuple[str, ...] = ()
    separator: str | None = None
    cell: Callable[[Any, Mapping[str, Any]], str | int | float] = plain_cell

    def label_fault(self, count: int) -> str | None:
        """Return what is wrong with a number of label columns, or None."""
        if 1 <= count <= self.label_columns:
            return None
        wanted = "one value" if self.label_columns == 1 else "one column or more"
        return f"expected {wanted}, found {COUNTS.get(count, str(count))}"

    def lists(self, description: Mapping[str, Any]) -> dict[str, str]:
        """Return the columns of labels in which fields may be lists, each with its separator."""
        if self.separator is None:
            return {}
        return dict.fromkeys(description["label"], description.get("separator") or self.separator)


def columns(described: TaskDescription) -> str:
    """Return the names of the text columns in one line."""
    return " and ".join(map(repr, described.texts))


def check_labels(name: str, labels: Sequence[str]) -> None:
    """Raise DataError for labels that look alike and those that would break prediction files."""
    seen: dict[str, str] = {}
    for label in labels:
        if not label or " , " in label or any(map(is_unsafe, label)):
            raise DataError(
                f"{name}: expected labels without ' , ' and line breaks, not blank, found "
                f"{short(label)}"
            )
        if len(label) > LONGEST_LABEL:
            raise DataError(
                f"{name}: expected labels of at most {LONGEST_LABEL} characters, found one of "
                f"{len(label):,}, {short(label)}"
            )
        if labels.count(label) > 1:
            raise DataError(f"{name}: expected unique labels, found {label!r} twice")
        visible = normalize("NFC", "".join(one for one in label if category(one) != "Cf"))
        if (other := seen.setdefault(visible, label)) != label:
            found = f"{other!a} and {label!a}"
            raise DataError(f"{name}: expected labels that look different, found {found}")
