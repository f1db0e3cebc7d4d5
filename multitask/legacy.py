"""Configurations that older versions wrote, in the form of today, and the other way round.

No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HARD = ("top_k", "threshold", "top_fraction")


def as_now(content: Mapping[str, Any]) -> dict[str, Any]:
    """A stored configuration with what its version did where a setting has changed.

    SMART's noise was added to the word embeddings, and its radius and step were no shares. Hard
    negatives were one mapping.
    """
    found = dict(content)
    weights = content.get("smart_weight")
    if isinstance(weights, Mapping) and any(weights.values()) and "smart_place" not in content:
        found.pop("smart_radius", None)
        found.pop("smart_step_size", None)
        found["smart_place"] = "words"
    hard = found.get("hard_negatives")
    if isinstance(hard, Mapping):
        del found["hard_negatives"]
        found |= {f"hard_{name}": hard[name] for name in HARD if name in hard}
    return found


def as_before(content: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with names of older versions, by which runs have their names."""
    found = dict(content)
    hard = {name: found.pop(f"hard_{name}", None) for name in HARD}
    given = {name: value for name, value in hard.items() if value is not None}
    return found | ({"hard_negatives": given} if given else {})
