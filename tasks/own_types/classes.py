"""Own tasks with one class per example."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import numpy as np

from common.later import nn
from common.settings import short
from common.text import first_names
from tasks.own_types.base import (
    LabelsByLine,
    OwnType,
    Parts,
    TaskDescription,
    check_labels,
    columns,
)
from tasks.predictions import PredictionFile
from tasks.readers import named_label, to_number
from tasks.text_files import DataError

MOST_CLASSES = 1000
PLACEHOLDERS = ("nan", "na", "n/a", "null")  # "none" is often a class
MANY_NUMBERS = 20  # different whole numbers, above which they rarely name classes


def complete_classes(
    name: str, description: Mapping[str, Any], file: str, found: LabelsByLine
) -> dict[str, Any]:
    """Return the given classes, or those of the file in the order of `sorted_labels`."""
    labels = tuple(description["labels"]) or sorted_labels(distinct_labels(name, file, found))
    check_labels(name, labels)
    return {"labels": labels}


def distinct_labels(
    name: str, file: str, found: LabelsByLine, what: str = "classes"
) -> tuple[str, ...]:
    """Return the distinct labels of a file, 2 to 1,000, in the order of their first rows."""
    distinct: dict[str, int] = {}
    for line, label in found:
        distinct.setdefault(label, line)
        if len(distinct) > MOST_CLASSES:
            cure = "; type=regression is for numbers" if what == "classes" else ""
            raise DataError(
                f"{file}, line {line}: expected at most {MOST_CLASSES} {what}, found one more, "
                f"{short(label)}{cure}"
            )
    if len(distinct) < 2:
        some = ", ".join(distinct) or "none"
        raise DataError(f"{file}: {name}: expected two {what} or more, found {some}")
    return tuple(distinct)


def sorted_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels sorted as numbers if all are numbers, else as text."""
    numbers = all(to_number(label) is not None for label in labels)
    return tuple(sorted(labels, key=float) if numbers else sorted(labels))


def spelled_twice(labels: Iterable[str]) -> str | None:
    """Return two labels that are the same number, such as 1 and 1.0; None if there are none."""
    first: dict[Decimal | float, str] = {}
    for label in labels:
        try:
            number: Decimal | float = Decimal(label.strip())
        except InvalidOperation:  # the exponent is too large; float has 0 or infinity
            number = float(label)
        other = first.setdefault(number, label)
        if other != label:
            return f"{other!r} and {label!r}"
    return None


def alike(labels: Iterable[str]) -> Iterator[str]:
    """Yield a notice if two labels differ only in case or in the number of spaces."""
    first: dict[str, str] = {}
    for label in labels:
        other = first.setdefault(" ".join(label.casefold().split()), label)
        if other != label:
            cure = "correct the column if that is not meant"
            yield f"labels {other!r} and {label!r} are two classes: {cure}"
            return


def fault(described: TaskDescription) -> str | None:
    if len(set(described.labels)) < 2:
        return f"labels: expected two or more, found {first_names(described.labels) or 'none'}"
    return None


def lines(described: TaskDescription) -> Iterator[str]:
    """Yield the columns and the classes, and a notice about doubtful labels."""
    count = f"{len(described.labels)} classes in column {described.label!r}"
    metric = f"; f1 is that of {described.labels[1]}" if len(described.labels) == 2 else ""
    names = first_names(described.labels, 10)
    yield f"classification of {columns(described)}, {count}: {names}{metric}"
    yield from alike(described.labels)
    numbers = [value for label in described.labels if (value := to_number(label)) is not None]
    words = [label for label in described.labels if to_number(label) is None]
    if missing := [label for label in words if label.lower() in PLACEHOLDERS]:
        yield f"if class {missing[0]!r} stands for a missing value, leave its cells blank"
    if numbers and words:
        yield (
            f"labels are numbers and words ({len(numbers)} numbers; {first_names(words)}): each is "
            "a class of its own; correct the column if that is not meant"
        )
    elif not words and (twice := spelled_twice(described.labels)):
        yield f"labels {twice} are the same number, but two classes: correct the column"
    elif len(numbers) > MANY_NUMBERS or not all(one.is_integer() for one in numbers):
        pairs = len(described.texts) == 2
        cure = f"type={'similarity' if pairs else 'regression'} learns them as numbers"
        yield f"labels look like numbers on a scale, but are classes without an order; {cure}"


def head(described: TaskDescription, outputs: int) -> Callable[[int], nn.Module]:
    """Return BEES' head for a text (M4), also for a joint pair, or for both texts (M5)."""
    from tasks.heads import HiddenClassifier, PairClassifier

    if len(described.texts) == 2 and not described.joint:
        return partial(PairClassifier, classes=outputs, difference=True)
    return partial(HiddenClassifier, classes=outputs)


def class_names_file(described: TaskDescription) -> PredictionFile:
    """Return a prediction file with the classes as written in the task's files."""
    labels = described.labels
    return PredictionFile(
        described.name,
        "Predicted_Label",
        show=lambda value: labels[int(value)],
        parse=named_label(labels),
    )


def build(described: TaskDescription) -> Parts:
    from tasks.kinds import classification

    labels = described.labels
    return Parts(
        kind=classification(len(labels), matthews=True, names=labels),
        build_head=head(described, len(labels)),
        output=class_names_file(described),
        parse_label=named_label(labels),
        target_type=np.int64,
    )


CLASSIFICATION = OwnType(
    predicts="class",
    main_metric="accuracy",
    texts=(1, 2),
    keys=("labels",),
    complete=complete_classes,
    fault=fault,
    lines=lines,
    build=build,
)
