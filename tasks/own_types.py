"""The types of own tasks: inferred and completed from labels, and made into parts of a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from common.later import nn
from common.settings import short
from tasks import kinds
from tasks.predictions import PredictionFile, finite_number
from tasks.readers import named_label, score_label, to_number
from tasks.tables import DataError

if TYPE_CHECKING:
    from tasks.own_task import OwnTask

TypeName = Literal["classification", "multi-label", "regression", "similarity"]
SEPARATOR = "|"  # of several labels in a cell, by default
MOST_LEVELS = 20  # different whole numbers that are taken for classes
MARKS = ",;|"  # between several labels in a cell
MARKED = 0.1  # smallest share of cells with such a mark
REPEATED = 0.5  # smallest share of cells whose value another cell has, too
LARGEST = 1e30  # number, so that float32 can hold it
LEAST_SPREAD = 1e-5  # of the deviation to the largest number: float32 has seven digits
INDICATORS = {
    **dict.fromkeys(("", "0", "0.0", "no", "false"), 0.0),
    **dict.fromkeys(("1", "1.0", "yes", "true"), 1.0),
}


class Parts(NamedTuple):
    """What a type decides of a task: `parse_label` reads a label of its files."""

    kind: kinds.Kind
    build_head: Callable[[int], nn.Module]
    output: PredictionFile
    parse_label: Callable[[str], Any]
    target_type: type


# The type, from the cells of the column


def infer_type(cells: Mapping[str, int], texts: int, lists: bool = False) -> dict[str, str]:
    """Return the keys `type` and perhaps `separator` of a task with this column of labels.

    `cells` says how often each cell occurs, without blank ones; `lists` are joined by `SEPARATOR`.
    `texts` is the number of texts of an example. Raise ValueError for a column of free text.
    """
    if lists:
        labels: Counter[str] = Counter()
        for cell, times in cells.items():
            labels.update(dict.fromkeys(parts_of(cell, SEPARATOR), times))
        check_recurring(labels)
        return {"type": "multi-label"}
    numbers = {to_number(cell) for cell in cells}
    if None not in numbers:
        whole = all(number is not None and number.is_integer() for number in numbers)
        if whole and len(numbers) <= MOST_LEVELS:
            return {"type": "classification"}
        if whole:
            check_recurring(cells)
        return {"type": "similarity" if texts == 2 else "regression"}
    if all(to_number(cell.replace(",", "")) is not None for cell in cells):
        found = next(cell for cell in cells if "," in cell)
        line = "expected a point in decimal numbers, and no mark between thousands"
        raise ValueError(f"{line}, found {found!r}; or name type and separator")
    check_no_lists([*cells])
    if separator := separator_of(cells):
        return {"type": "multi-label", "separator": separator}
    if len(cells) > 2:
        check_recurring(cells)
    return {"type": "classification"}


def check_recurring(cells: Mapping[str, int]) -> None:
    """Raise ValueError if hardly any value occurs twice."""
    total, once = sum(cells.values()), sum(count == 1 for count in cells.values())
    if total - once < REPEATED * total:
        raise ValueError(
            f"expected labels that recur, found free text or ids: {once:,} of {total:,} values "
            f"occur once, such as {short(max(cells, key=len))}; leave the column out, or name type"
        )


def check_no_lists(cells: Sequence[str]) -> None:
    """Raise ValueError if most cells are lists as a program prints them, such as ['a', 'b']."""
    lists = [cell for cell in cells if cell.startswith(("['", '["'))]
    if 2 * len(lists) > len(cells):
        cure = "save the table as JSON Lines or Parquet, or write labels with a mark between them"
        raise ValueError(f"expected labels, found lists as text, such as {lists[0][:40]!r}; {cure}")


def separator_of(cells: Mapping[str, int]) -> str | None:
    """Return the mark that separates several labels in many cells; None without one.

    The labels must recur: on average twice, and half of those in such cells in different cells, as
    the words of free text and of class names such as 'bed, bath' do not.
    """
    marked = {mark: sum(n for cell, n in cells.items() if mark in cell) for mark in MARKS}
    for mark in sorted(MARKS, key=lambda one: -marked[one]):
        uses: Counter[str] = Counter()
        places: Counter[str] = Counter()
        for cell, times in cells.items():
            for label in set(parts_of(cell, mark)):
                uses[label] += times
                places[label] += 1
        several = {label for cell in cells if mark in cell for label in parts_of(cell, mark)}
        recur = 2 * sum(places[label] > 1 for label in several) >= len(several) > 1
        if marked[mark] >= MARKED * sum(cells.values()) and recur and uses.total() >= 2 * len(uses):
            return mark
    return None


# What else the labels of the training file say


def learnt(own: OwnTask, cells: Sequence[tuple[int, str]]) -> dict[str, Any]:
    """Return the keys of the type that follow from (line, cell) of the labels, if not given."""
    texts = [cell for _, cell in cells]
    if own.type == "classification":
        return {"labels": own.labels or in_order(texts)}
    if own.type == "multi-label":
        separator = own.separator or SEPARATOR
        labels = own.labels or (own.label if len(own.label) > 1 else ())
        if not labels:
            check_no_lists(texts)
            labels = in_order([label for cell in texts for label in parts_of(cell, separator)])
        return {"labels": labels, "separator": separator}
    for line, cell in cells:
        if to_number(cell) is None:
            raise DataError(f"{own.train}, line {line}: expected a number, found {cell!r}")
    numbers = np.array(texts, np.float64)
    if own.type == "similarity":
        low = float(numbers.min()) if own.low is None else own.low
        return {"low": low, "high": float(numbers.max()) if own.high is None else own.high}
    deviation, largest = float(numbers.std()), float(np.abs(numbers).max())
    if deviation <= LEAST_SPREAD * largest:  # the deviation of very small numbers may be 0
        raise ValueError(
            f"expected numbers that differ, found a standard deviation of {deviation:.3g} and a "
            f"largest number of {largest:.3g}; subtract a constant or use a smaller unit"
        )
    return {"mean": float(numbers.mean()), "deviation": deviation}


def parts_of(cell: str, separator: str) -> Iterator[str]:
    """Yield the labels in a cell, without empty ones."""
    yield from filter(None, map(str.strip, cell.split(separator)))


def in_order(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the different labels, sorted as numbers if all are numbers, else as text."""
    numbers = all(to_number(label) is not None for label in labels)
    return tuple(sorted(dict.fromkeys(labels), key=float if numbers else str))


# The parts of a task


def head(own: OwnTask, outputs: int) -> Callable[[int], nn.Module]:
    """Return BEES' head for a text (M4), also for a joint pair, or for both texts (M5)."""
    from tasks.heads import HiddenClassifier, PairClassifier

    if len(own.text) == 2 and own.pair == "bi":
        return partial(PairClassifier, classes=outputs, difference=True)
    return partial(HiddenClassifier, classes=outputs)


def classification(own: OwnTask) -> Parts:
    labels, parse = own.labels, named_label(own.labels)
    return Parts(
        kinds.classification(len(labels), matthews=True, names=labels),
        head(own, len(labels)),
        PredictionFile(own.name, "Predicted_Label", lambda value: labels[int(value)], parse),
        parse,
        np.int64,
    )


def multi_label(own: OwnTask) -> Parts:
    """Return heads with a sigmoid per label; targets are (n, C)."""
    labels, separator = own.labels, own.separator or SEPARATOR

    def show(values: Sequence[float]) -> str:
        return separator.join(one for one, value in zip(labels, values, strict=True) if value)

    def parse(cell: str) -> tuple[float, ...]:
        found = set(parts_of(cell, separator))
        if found - {*labels}:
            raise ValueError(f"expected labels of {', '.join(labels)}")
        return tuple(float(label in found) for label in labels)

    def indicator(cell: str) -> float:
        if cell.lower() not in INDICATORS:
            raise ValueError("expected 0 or 1, no or yes, false or true")
        return INDICATORS[cell.lower()]

    return Parts(
        kinds.multi_label(len(labels), labels),
        head(own, len(labels)),
        PredictionFile(own.name, "Predicted_Labels", show, parse),
        parse if len(own.label) == 1 else indicator,
        np.float32,
    )


def regression(own: OwnTask) -> Parts:
    return Parts(
        kinds.regression(own.mean or 0.0, own.deviation or 1.0),
        head(own, 1),
        PredictionFile(
            own.name, "Predicted_Number", lambda value: str(np.float32(value)), finite_number
        ),
        score_label(-LARGEST, LARGEST),
        np.float32,
    )


def similarity(own: OwnTask) -> Parts:
    """Return BEES' head for similarity (M6), or for a joint pair a regression.

    Targets are relative to `low`, but not the numbers in files.
    """
    from tasks.heads import CosineSimilarity, JointSimilarity

    low, high = own.low or 0.0, own.high or 0.0
    span, score = high - low, score_label(low, high)
    cosine = partial(CosineSimilarity, scale=span, hidden=True, activation="relu")
    return Parts(
        kinds.similarity(span),
        partial(JointSimilarity, scale=span) if own.pair == "joint" else cosine,
        PredictionFile(
            own.name,
            "Predicted_Similarity",
            show=lambda value: str(np.float32(value + low)),
            parse=lambda text: finite_number(text) - low,
            scale=(0, span),
        ),
        lambda text: score(text) - low,
        np.float32,
    )


PARTS: dict[TypeName, Callable[[OwnTask], Parts]] = {
    "classification": classification,
    "multi-label": multi_label,
    "regression": regression,
    "similarity": similarity,
}
