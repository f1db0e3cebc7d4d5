"""The types of own tasks, by the value of the key `type`. To add one, add a line to `TYPES`."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from common.errors import SettingsError
from tasks.own_types.base import OwnType
from tasks.own_types.classes import CLASSIFICATION
from tasks.own_types.multi_label import MULTI_LABEL
from tasks.own_types.regression import REGRESSION
from tasks.own_types.similarity import SIMILARITY
from tasks.registry import TargetType

TYPES: dict[str, OwnType] = {
    "classification": CLASSIFICATION,
    "similarity": SIMILARITY,
    "multi-label": MULTI_LABEL,
    "regression": REGRESSION,
}


def type_of_lists(texts: int, labels: Sequence[Any], keys: Container[str] = ()) -> str:
    """Return the type of a task from lists, with these further keys of its description.

    It is multi-label for lists of labels, similarity for pairs with numbers, one a float, and
    regression for single texts with numbers, one with a fraction. Keys of classes make it
    classification. A missing label is None. Raise SettingsError where they leave the type open.
    """
    known = [label for label in labels if label is not None]
    types = {type(label) for label in known}
    if types & {list, tuple}:
        return "multi-label"
    if "labels" in keys or not types <= {int, float}:
        return "classification"
    if any(label % 1 for label in known):
        return "similarity" if texts == 2 else "regression"
    if texts == 1 or float not in types:
        return "classification"
    if len(known) < len(labels):  # pandas stores whole numbers beside missing ones as floats
        line = "expected similarity or classification, as some labels of the pairs are missing"
        raise SettingsError(f"type: {line}, found none")
    return "similarity"


def predicts(described: Mapping[str, Any]) -> TargetType | None:
    """Return what a description's type predicts, as `OwnType.predicts`; None if it has no type."""
    found = TYPES.get(str(described.get("type")))
    return found.predicts if found else None
