"""Configurations that older versions wrote, in the form of today, and the other way round.

No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from multitask.errors import RunError

OF_EVERY_RUN = ("clip", "device", "patience", "steps_per_epoch", "warmup")
HARD = ("top_k", "threshold", "top_fraction")


def as_now(content: Mapping[str, Any]) -> dict[str, Any]:
    """A stored configuration with what its version did where a setting has changed.

    SMART's noise was added to the word embeddings, and its radius and step were no shares. Hard
    negatives were one mapping. Similarities had labels from 0 to 1 in the loss: in a configuration
    of a run, which has all of its settings; somebody's own file of a few has the defaults.
    """
    found = dict(content)
    if all(key in content for key in OF_EVERY_RUN):
        found.setdefault("similarity_scale", 1.0)
    weights = content.get("smart_weight")
    if isinstance(weights, Mapping) and any(weights.values()) and "smart_place" not in content:
        found.pop("smart_radius", None)
        found.pop("smart_step_size", None)
        found["smart_place"] = "words"
    hard = found.get("hard_negatives")
    if isinstance(hard, Mapping):
        if unknown := [name for name in hard if name not in HARD]:
            raise RunError(f"hard_negatives: expected {', '.join(HARD)}, found {unknown[0]!r}")
        del found["hard_negatives"]
        found |= {f"hard_{name}": hard[name] for name in HARD if name in hard}
    return found


def as_before(content: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with names of older versions, by which runs have their names."""
    found = dict(content)
    hard = {name: found.pop(f"hard_{name}", None) for name in HARD}
    given = {name: value for name, value in hard.items() if value is not None}
    return found | ({"hard_negatives": given} if given else {})
