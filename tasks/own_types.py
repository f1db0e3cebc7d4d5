"""The types of own tasks: what their labels say, and the parts of a task."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from common.errors import all_names
from common.settings import short
from tasks.base import BuildHead, lazy_head
from tasks.kinds import Kind, classification, multi_label, regression, similarity
from tasks.predictions import PredictionFile
from tasks.readers import Parser, class_parser, number_parser, plain, to_number

if TYPE_CHECKING:
    from tasks.own_task import OwnTask

TypeName = Literal["classification", "multi-label", "regression", "similarity"]
LEARNT: dict[TypeName, tuple[str, ...]] = {  # keys that the training file says
    "classification": ("labels",),
    "multi-label": ("labels",),
    "regression": ("mean", "deviation"),
    "similarity": ("low", "high"),
}
LEAST_SPREAD = 1e-5  # of a deviation over the largest number: float32 has seven digits
MOST_LEVELS = 20  # different whole numbers that are taken for classes
# Labels that often mark a row without a label, and marks that often separate several labels.
PLACEHOLDER = re.compile(
    r"(?i)\?+|--+|[—–.]|none|null|nan|nat|#?n/?a|n\.a\.|<na>|nil|undefined|unknown|missing|\(blank\)"
)
SEPARATORS = "|;,"
INDICATORS = {"": 0, "0": 0, "no": 0, "false": 0, "1": 1, "yes": 1, "true": 1}


def infer_type(cells: Sequence[str], texts: int) -> TypeName:
    """Return the type of a task with these labels and this number of texts; refuse free text."""
    counts = Counter(cells)
    numbers = {to_number(cell) for cell in counts if not PLACEHOLDER.fullmatch(cell)} or {None}
    once = [cell for cell, count in counts.items() if count == 1]
    if None in numbers and len(counts) > 2 and 2 * len(once) > len(cells):
        raise ValueError(
            f"the labels look like free text or ids: {len(once):,} of {len(cells):,} values occur "
            f"only once, such as {short(once[0])}; leave the column out, or add type=TYPE"
        )
    several = len(numbers) > MOST_LEVELS or any(n is not None and n % 1 for n in numbers)
    if None in numbers or not several:
        return "classification"
    return "similarity" if texts == 2 else "regression"


def looks_like(cells: Sequence[str]) -> str:
    """Return the type that a column of labels with these cells would have, or what else it is."""
    try:
        return infer_type([*filter(None, cells)], 1)
    except ValueError:
        return "text or ids"


def learnt(own: "OwnTask", cells: Sequence[tuple[int, str]]) -> dict[str, Any]:
    """Return the keys of `LEARNT` that follow from (line, cell) of the labels."""
    texts = [cell for _, cell in cells]
    if len(own.label) > 1:
        return {"labels": own.label}
    if own.type == "multi-label":
        texts = [label for cell in texts for label in labels_in(cell, own.mark)]
    if own.type in ("classification", "multi-label"):
        labels = in_order(texts)
        none = blanks_among(labels) - {*own.labels}
        return {"labels": tuple(n for n in labels if n not in none), "blank": (*own.blank, *none)}
    for line, cell in cells:
        if to_number(cell) is None:
            cure = f"add blank={cell} to leave such rows out"
            raise ValueError(f"line {line}: expected a number, found {cell!r}; {cure}")
    numbers = np.array(texts, np.float64)
    if own.type == "similarity":
        # Whole numbers: the next file may go a little further than this one.
        return {"low": float(np.floor(numbers.min())), "high": float(np.ceil(numbers.max()))}
    deviation, largest = float(numbers.std()), float(np.abs(numbers).max())
    if deviation <= LEAST_SPREAD * largest:
        found = f"standard deviation {deviation:.3g}, largest number {largest:.3g}"
        cure = "subtract a constant or use a smaller unit"
        raise ValueError(f"the numbers hardly differ ({found}); {cure}")
    return {"mean": float(numbers.mean()), "deviation": deviation}


def labels_in(cell: str, separator: str) -> Iterator[str]:
    """Yield the labels in a cell, without empty ones."""
    yield from filter(None, map(str.strip, cell.split(separator)))


def in_order(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the different labels, sorted as numbers if all are numbers, else as text.

    Of several spellings of a number the shortest is the label; 1.0 is 1.
    """
    keys = {label: same(label) for label in labels}
    whole = all(isinstance(one, Decimal) and float(one).is_integer() for one in keys.values())
    found: dict[Decimal | str, str] = {}
    for label in sorted(keys, key=lambda one: (len(one), one)):
        found.setdefault(keys[label], re.sub(r"\.0*$", "", label) if whole else label)
    numbers = all(to_number(label) is not None for label in found.values())
    return tuple(sorted(found.values(), key=float if numbers else str))


def same(label: str) -> Decimal | str:
    """Return what equal labels have in common: numbers their value, words all of their letters."""
    return label if isinstance(found := plain(label), str) else found


def blanks_among(labels: Sequence[str]) -> set[str]:
    """Return the labels that mean none: -1 beside 0 to n, and - beside words or numbers."""
    if len(labels) > 2 and {*map(to_number, labels)} == {*range(-1, len(labels) - 1)}:
        return {"-1"}
    words = "+" not in labels and any(map(str.isalnum, "".join(labels)))
    return {"-"} & {*labels} if words else set()


def hints(labels: Sequence[str]) -> Iterator[str]:
    """Yield what about the labels of a column may not be meant."""
    none = ["-1"] if len(labels) > 2 and "-2" not in labels else []
    if odd := [one for one in labels if PLACEHOLDER.fullmatch(one) or one in none]:
        what = "is read as a label" if len(odd) == 1 else "are read as labels"
        yield f"{all_names([*map(repr, odd)])} {what}; blank={'|'.join(odd)} would leave them out"
    for mark in SEPARATORS:  # several labels in cells such as a;b
        several = [one for one in labels if mark in one]
        if several and len({n for one in labels for n in labels_in(one, mark)}) <= len(labels):
            cure = "type=multi-label,separator=" + mark.replace(",", "\\,")
            yield f"{several[0]!r} is read as one label; {cure} splits it"


def parts(own: "OwnTask") -> tuple[Kind, BuildHead, PredictionFile, Parser]:
    """Return the kind, the head (of BEES), the prediction file and the parser of labels of a task.

    Similarities are relative to `low`, but not in files.
    """
    labels, joint, file = own.labels, own.pair == "joint", partial(PredictionFile, own.name)
    classes = len(labels) or 1
    head = lazy_head("HiddenClassifier", classes=classes)
    if len(own.text) == 2 and not joint:
        head = lazy_head("PairClassifier", classes=classes, difference=True)
    match own.type:
        case "classification":
            parse = class_parser({label: number for number, label in enumerate(labels)})
            output = file("Predicted_Label", lambda value: labels[int(value)])
            return classification(len(labels), True, labels), head, output, parse
        case "multi-label":
            alone = len(own.label) == 1
            parse = labels_parser(labels, own.mark) if alone else class_parser(INDICATORS)
            join, pairs = own.mark.join, partial(zip, labels, strict=True)
            output = file("Predicted_Labels", lambda row: join(one for one, on in pairs(row) if on))
            return multi_label(len(labels), labels), head, output, parse
        case "regression":
            output = file("Predicted_Number", lambda n: str(np.float32(n)))
            return regression(**own.known), head, output, number_parser()
        case _:
            low, high = own.known.values()
            span = high - low
            head = lazy_head("JointSimilarity", scale=span)
            if not joint:
                how = {"hidden": True, "activation": "relu"}
                head = lazy_head("CosineSimilarity", scale=span, **how)
            output = file("Predicted_Similarity", lambda n: str(np.float32(n + low)), (0, span))
            return similarity(span), head, output, number_parser(low, high, low)


def labels_parser(labels: Sequence[str], separator: str) -> Parser:
    """Return a parser of cells with several labels: 1 for each label of a cell, else 0."""
    number = class_parser({label: place for place, label in enumerate(labels)})

    def parse(cell: str) -> tuple[float, ...]:
        try:
            found = {*map(number, labels_in(cell, separator))}
        except ValueError:
            raise ValueError(f"expected labels of {', '.join(labels)}") from None
        return tuple(float(place in found) for place in range(len(labels)))

    return parse
