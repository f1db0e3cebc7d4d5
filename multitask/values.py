"""What a single setting may be: its range, its choices, its type. No torch is imported here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args

from minbert.typed import fits, shown
from multitask import choices
from multitask.combiners import COMBINERS
from multitask.sampling import SAMPLERS
from multitask.schedule import SCHEDULES

MANY = 1_000_000


@dataclass(frozen=True)
class Number:
    """A number from `low` to `high`; `above` leaves `low` itself out."""

    low: float
    high: float = MANY
    above: bool = False
    whole: bool = False

    @property
    def expected(self) -> str:
        what = "a whole number" if self.whole else "a number"
        span = f"above {self.low} and at most" if self.above else f"from {self.low} to"
        return f"{what} {span} {self.high}"

    def holds(self, value: Any) -> bool:
        """Whether `value` is such a number; a float is no whole number, and NaN is none."""
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        return self.low <= value <= self.high and not (self.above and value == self.low)


COUNT = Number(1, whole=True)
RATE = Number(0, above=True)
FROM_ZERO = Number(0)
WHOLE = Number(0, whole=True)
SHARE = Number(0, 1)
PART = Number(0, 1, above=True)
NUMBERS = {
    "dev_limit": COUNT,
    "shots": COUNT,
    "imbalance": Number(1),
    "probe_epochs": WHOLE,
    "contrast_temperature": RATE,
    "margin": RATE,
    "positives": COUNT,
    "negatives": COUNT,
    "hard_after": WHOLE,
    "scl_temperature": RATE,
    "scl_weight": SHARE,
    "label_temperature": RATE,
    "label_heads": COUNT,
    "label_spread": FROM_ZERO,
    "projection_layers": Number(0, 100, whole=True),
    "temperature": Number(1),
    "size_cap": COUNT,
    "first_epochs": WHOLE,
    "batches_per_step": COUNT,
    "similarity_scale": RATE,
    "micro_batch": COUNT,
    "cones": Number(2, 100, whole=True),
    "smart_steps": COUNT,
    "smart_step_size": RATE,
    "smart_radius": RATE,
    "proximal_momentum": SHARE,
    "epochs": COUNT,
    "steps_per_epoch": COUNT,
    "batch_size": COUNT,
    "lr": RATE,
    "head_lr": RATE,
    "weight_decay": FROM_ZERO,
    "warmup": SHARE,
    "clip": RATE,
    "evaluate_every": COUNT,
    "patience": COUNT,
    "measured_examples": WHOLE,
    "seed": Number(0, 2**32 - 1, whole=True),
}
# Numbers by task, or of other settings: every value.
EACH = {
    "smart_weight": FROM_ZERO,
    "proximal_weight": FROM_ZERO,
    "r_drop_weight": FROM_ZERO,
    "preference": FROM_ZERO,
    "loss_sizes": RATE,
    "scl_preference": SHARE,
}
HARD = {"top_k": COUNT, "threshold": Number(-1, 1), "top_fraction": PART}
CHOICES: dict[str, tuple[str, ...]] = {
    "mode": ("", *choices.MODES),  # "" of a configuration that others are made from
    "pooling": choices.POOLINGS,
    "protocol": choices.PROTOCOLS,
    "leaks_of": choices.LEAKS,
    "objective": (
        *choices.OBJECTIVES,
        *choices.TEXT_OBJECTIVES,
        *choices.CLASS_OBJECTIVES,
    ),
    "projection_head": choices.PROJECTION_HEADS,
    "super_loss": choices.SUPER_LOSSES,
    "scl_inputs": choices.INPUTS,
    "label_start": choices.LABEL_STARTS,
    "sampling": tuple(SAMPLERS),
    "schedule": SCHEDULES,
    "combiner": tuple(COMBINERS),
    "gradients": choices.GRADIENTS,
    "smart_norm": choices.NORMS,
    "smart_variant": choices.VARIANTS,
    "smart_place": choices.PLACES,
    "smart_dropout": choices.DROPOUTS,
    "select_by": choices.METRICS,
    "keep": choices.KEEPS,
    "precision": choices.PRECISIONS,
    "linear": choices.LINEARS,
}
DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,3})?")
LIMIT = f"a whole number from 1 to {MANY}, or a share above 0 and below 1"


def is_limit(value: Any) -> bool:
    """Whether it is a number of examples, or a share of them below 1."""
    if isinstance(value, float):
        return 0 < value < 1
    return COUNT.holds(value)


def value_faults(settings: Mapping[str, Any], hints: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each setting whose value is none that it may have; `hints` are their types.

    What has no type is passed over.
    """
    for name, hint in hints.items():
        if name not in settings:
            continue
        value = settings[name]
        if value is None and NoneType in get_args(hint):
            continue
        if name in NUMBERS:
            if not NUMBERS[name].holds(value):
                yield f"{name}: expected {NUMBERS[name].expected}, found {shown(value)}"
        elif name in CHOICES:
            if not isinstance(value, str) or value not in CHOICES[name]:
                names = ", ".join(filter(None, CHOICES[name]))
                yield f"{name}: expected one of {names}, found {shown(value)}"
        elif name == "limit":
            limits = value.values() if isinstance(value, dict) else (value,)
            if not limits or not all(map(is_limit, limits)):
                yield f"limit: expected {LIMIT}, or one by task, found {shown(value)}"
        elif not fits(value, hint):
            expected = KINDS.get(name, "another kind of value")
            yield f"{name}: expected {expected}, found {shown(value)}"
        else:
            yield from part_faults(name, value)


def part_faults(name: str, value: Any) -> Iterator[str]:
    """Faults of the parts of a setting that has several, or a form of its own."""
    if name in EACH:
        for part in value.values() if isinstance(value, Mapping) else value:
            if not EACH[name].holds(part):
                yield f"{name}: expected {EACH[name].expected}, found {shown(part)}"
    if name == "hard_negatives":
        for key, part in value.items():
            if key not in HARD:
                yield f"hard_negatives: expected one of {', '.join(HARD)}, found {key!r}"
            elif not HARD[key].holds(part):
                yield f"hard_negatives: {key}: expected {HARD[key].expected}, found {shown(part)}"
    if name == "label_terms":
        once = len(set(value)) == len(value) > 0
        if not once or not set(value) <= set(choices.TERMS):
            yield f"label_terms: expected some of {', '.join(choices.TERMS)}, found {shown(value)}"
    if name == "device" and not DEVICE.fullmatch(value):
        yield f"device: expected auto, cpu, cuda or cuda:N, found {shown(value)}"
    if name in TEXTS and not value.strip():
        yield f"{name}: expected a name, found {shown(value)}"


TEXTS = ("data", "encoder", "init", "nli", "text", "text_column", "other_column")
FLAGS = ("drop_leaks", "freeze_encoder", "projection", "per_class")
KINDS = {  # what is expected of a value of another type
    "tasks": "a sequence of names of tasks",
    "task_options": "options by task",
    "own_tasks": "descriptions by task",
    **dict.fromkeys(("smart_weight", "proximal_weight", "r_drop_weight"), "a weight by task"),
    **dict.fromkeys(("preference", "loss_sizes"), "a sequence of numbers"),
    "scl_preference": "two numbers",
    "hard_negatives": "a number by name",
    "label_terms": "a sequence of names",
    **dict.fromkeys(FLAGS, "True or False"),
    **dict.fromkeys((*TEXTS, "device"), "a text that can be printed"),
}
