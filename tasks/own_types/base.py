"""What a type of own tasks consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category, normalize

from common.errors import SettingsError, UserError, is_unsafe
from common.settings import short_repr
from tasks.registry import TargetType
from tasks.text_files import DataError

if TYPE_CHECKING:
    from torch import nn

    from tasks.kinds import Kind
    from tasks.predictions import PredictionFile
    from tasks.task_description import TaskDescription

LabelsByLine = Iterator[tuple[int, str]]
LONGEST_LABEL = 1000
MISSING_REPRS = ("None", "nan", "<NA>", "NaT")  # of missing labels; the last two are of pandas
COUNTS = {0: "none", 2: "two"}


class DescriptionError(UserError):
    """An invalid description of a task."""

    status = 2


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
        raise SettingsError(f"labels: expected texts or numbers, found {short_repr(label)}")
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
                f"{short_repr(label)}"
            )
        if len(label) > LONGEST_LABEL:
            raise DataError(
                f"{name}: expected labels of at most {LONGEST_LABEL} characters, found one of "
                f"{len(label):,}, {short_repr(label)}"
            )
        if labels.count(label) > 1:
            raise DataError(f"{name}: expected unique labels, found {label!r} twice")
        visible = normalize("NFC", "".join(one for one in label if category(one) != "Cf"))
        if (other := seen.setdefault(visible, label)) != label:
            found = f"{other!a} and {label!a}"
            raise DataError(f"{name}: expected labels that look different, found {found}")
