"""The JSON files of a run, with the types of all that is read from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import Meta

from common.errors import RunError
from common.files import is_run, read_json_if_any
from multitask.settings.methods import ROLES

Figures = Annotated[dict[str, float], Meta(min_length=1)]
Conflict = Annotated[
    dict[Literal["steps", "conflict_rate", "mean_cosine"], float], Meta(min_length=3)
]
Temperature = Annotated[float, Meta(ge=1e-3, le=1e3)]


class Named(TypedDict):
    """A task or a method with its settings."""

    name: str


class Member(TypedDict):
    """What an ensemble has about a task."""

    selected_on_examples: int
    reported_examples: int
    weights: dict[str, int]
    dev: dict[str, Figures]


SETTINGS: dict[str, Any] = {
    **dict.fromkeys(("mode", "data", "encoder", "method"), str),
    **dict.fromkeys(ROLES, Named | None),
    "regularizers": list[Named],
    "tasks": list[str | Named],
    "seed": int,
    "init": str | None,
    "members": dict[str, list[str]],
}
METRICS: dict[str, Any] = {
    **dict.fromkeys(("best_epoch", "epochs", "steps"), int),
    **dict.fromkeys(("training_seconds", "examples_per_second", "seconds"), float),
    **dict.fromkeys(("test", "before"), dict[str, Figures]),
    "dev": dict[str, Figures | float],
    "calibration": Figures,
    "conflicts": dict[str, Conflict],
    "combiner_steps": dict[str, int],
    "members": dict[str, Member],
}


def read_run_json(file: Path) -> dict[str, Any]:
    """Return the content of a run's JSON file, empty without one; RunError if it is damaged."""
    content = read_json_if_any(file, RunError)
    types = METRICS if file.name == "metrics.json" else SETTINGS if is_run(content) else {}
    if file.name == "calibration.json":
        types = dict.fromkeys(content, Temperature)
    for key in types.keys() & content.keys():
        try:
            msgspec.convert(content[key], types[key])
        except msgspec.ValidationError as error:
            line = f"{file}: {key}: {error}; restore the file, or train again"
            raise RunError(line) from error
    return content
