"""Presets: the settings of papers, each with its source in the paper.

A preset only changes defaults; explicit settings override it. No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import SettingsError
from common.settings import short_repr
from common.suggestions import suggestion


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
        "lr": (2e-5, "section 5.3"),
        "head_lr": (2e-5, "section 5.3"),
        "weight_decay": (0.01, "section 5.3"),
        "lr_schedule": ("constant", "section 5.3: Adam with one rate"),
        "warmup": (0.0, "section 5.3: Adam with one rate"),
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
            "lr": (1e-5, "section 4.1"),
            "head_lr": (1e-5, "section 4.1"),
            "batch_size": (16, "section 4.1"),
            "epochs": (3, NOT_IN_PAPER),
            "objective": ("epo", "Algorithm 1"),
            "scl_temperature": (0.3, "section 4.1"),
            "scl_weight": (0.3, "section 4.1"),
            "scl_preference": ((0.1, 0.9), "section 4.1"),
            "class_balanced": (True, "Algorithm 1: a mini-batch for each class"),
        },
    ),
    "supercontext": Preset(
        "SuperConText (Moukafih, Sbihi, Ghogho and Smaili, 2023), with the encoder of the run",
        {
            "lr": (1e-3, "section IV.B"),
            "head_lr": (1e-3, "section IV.B"),
            "weight_decay": (0.0, "section IV.B: Adam"),
            "lr_schedule": ("constant", "section IV.B: Adam with one rate"),
            "warmup": (0.0, "section IV.B: Adam with one rate"),
            "epochs": (60, "section IV.B"),
        },
        {
            "pretrain": {
                "objective": ("superloss", "Algorithm 1"),
                "batch_size": (800, "section IV.B"),
                "projection_head": ("nonlinear", "section IV.C"),
                "contrast_temperature": (0.1, NOT_IN_PAPER),
            }
        },
    ),
    "lacon": Preset(
        "LaCon (Zhang, Zhao, Chen and He, 2022)",
        {
            "encoder": ("bert-base-uncased", "section 2.1"),
            "pooling": ("cls", "section 2.1"),
            "lr": (2e-5, "section 3.1, of 1e-5, 2e-5 and 3e-5"),
            "head_lr": (2e-5, "section 3.1, of 1e-5, 2e-5 and 3e-5"),
            "batch_size": (16, "section 3.1, of 8 to 96"),
            "epochs": (10, "section 3.1"),
            "lr_schedule": ("linear", "section 3.1"),
            "warmup": (0.06, "section 3.1"),
            "objective": ("lacon", "section 2.2"),
        },
    ),
}


def preset_of(name: Any) -> Preset:
    """Return the preset of a name; raise SettingsError for any other value."""
    if not isinstance(name, str) or name not in PRESETS:
        line = f"preset: expected one of {', '.join(PRESETS)}, found {short_repr(name)}"
        raise SettingsError(line + suggestion(name, PRESETS))
    return PRESETS[name]


def preset_values(name: Any, mode: str) -> dict[str, Any]:
    """Return the values of a preset by setting; empty if the name is None."""
    found = {} if name is None else preset_of(name).of_mode(mode)
    return {key: value for key, (value, _) in found.items()}
