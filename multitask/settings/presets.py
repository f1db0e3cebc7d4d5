"""Presets: the settings of papers, each with its source in the paper.

A preset only changes defaults; explicit settings override it. A setting of a method has the name
of its part before it, as in `optimizer.lr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import SettingsError


@dataclass(frozen=True)
class Preset:
    """Settings by name, each as (value, source in the paper), and further ones by mode."""

    paper: str
    settings: Mapping[str, tuple[Any, str]]
    by_mode: Mapping[str, Mapping[str, tuple[Any, str]]] = field(default_factory=dict)

    def of_mode(self, mode: str) -> dict[str, tuple[Any, str]]:
        """Return the settings of the preset in a mode."""
        return {**self.settings, **self.by_mode.get(mode, {})}


NOT_IN_PAPER = "not in the paper; our choice"
BEES = Preset(
    "BEES (Dhayananda Ganesh), with the encoder of the run",
    {
        "optimizer.lr": (2e-5, "section 5.3"),
        "optimizer.head_lr": (2e-5, "section 5.3"),
        "optimizer.weight_decay": (0.01, "section 5.3"),
        "lr_schedule.name": ("constant", "section 5.3: Adam with one rate"),
        "lr_schedule.warmup": (0.0, "section 5.3: Adam with one rate"),
        "epochs": (10, "section 5.3, table of models"),
        "pooling": ("mean", "section 6"),
    },
    {
        "single": {"batch_size": (16, "section 5.3")},
        "multitask": {"batch_size": (8, "section 5.3")},
    },
)
PRESETS = {
    "bees": BEES,
    "bees-bert": Preset(
        "BEES (Dhayananda Ganesh)",
        {"encoder": ("bert-base-uncased", "the paper says BERT"), **BEES.settings},
        BEES.by_mode,
    ),
    "scl-moo": Preset(
        "SCL-MOO (Moukafih, Ghogho and Smaili, 2022)",
        {
            "encoder": ("roberta-base", "section 4.1"),
            "pooling": ("cls", "section 3"),
            "optimizer.lr": (1e-5, "section 4.1"),
            "optimizer.head_lr": (1e-5, "section 4.1"),
            "batch_size": (16, "section 4.1"),
            "epochs": (3, NOT_IN_PAPER),
            "objective.name": ("epo", "Algorithm 1"),
            "objective.temperature": (0.3, "section 4.1"),
            "objective.weight": (0.3, "section 4.1"),
            "objective.preference": ((0.1, 0.9), "section 4.1"),
            "class_balanced": (True, "Algorithm 1: a mini-batch for each class"),
        },
    ),
    "supercontext": Preset(
        "SuperConText (Moukafih, Sbihi, Ghogho and Smaili, 2023), with the encoder of the run",
        {
            "optimizer.lr": (1e-3, "section IV.B"),
            "optimizer.head_lr": (1e-3, "section IV.B"),
            "optimizer.weight_decay": (0.0, "section IV.B: Adam"),
            "lr_schedule.name": ("constant", "section IV.B: Adam with one rate"),
            "lr_schedule.warmup": (0.0, "section IV.B: Adam with one rate"),
            "epochs": (60, "section IV.B"),
        },
        {
            "pretrain": {
                "objective.name": ("superloss", "Algorithm 1"),
                "batch_size": (800, "section IV.B"),
                "objective.projection_head": ("nonlinear", "section IV.C"),
                "objective.contrast_temperature": (0.1, NOT_IN_PAPER),
            }
        },
    ),
    "lacon": Preset(
        "LaCon (Zhang, Zhao, Chen and He, 2022)",
        {
            "encoder": ("bert-base-uncased", "section 2.1"),
            "pooling": ("cls", "section 2.1"),
            "optimizer.lr": (2e-5, "section 3.1, of 1e-5, 2e-5 and 3e-5"),
            "optimizer.head_lr": (2e-5, "section 3.1, of 1e-5, 2e-5 and 3e-5"),
            "batch_size": (16, "section 3.1, of 8 to 96"),
            "epochs": (10, "section 3.1"),
            "lr_schedule.name": ("linear", "section 3.1"),
            "lr_schedule.warmup": (0.06, "section 3.1"),
            "objective.name": ("lacon", "section 2.2"),
        },
    ),
}


def preset_settings(name: Any, mode: str) -> dict[str, Any]:
    """Return the settings of a preset in a mode; raise SettingsError for an unknown name."""
    if name not in PRESETS:
        raise SettingsError(f"preset: there are {', '.join(PRESETS)}, found {name!r}")
    found: dict[str, Any] = {}
    for key, (value, _) in PRESETS[name].of_mode(mode).items():
        part, _, field_name = key.partition(".")
        if field_name:
            found.setdefault(part, {})[field_name] = value
        else:
            found[part] = value
    return found
