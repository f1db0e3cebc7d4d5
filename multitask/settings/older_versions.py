"""The form of a run's settings in older versions. No torch is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import RunError

FORMER_NAMES = {"class_balanced": "per_class"}  # of settings, today's name first
OF_EVERY_RUN = ("clip", "device", "patience", "steps_per_epoch", "warmup")
# Defaults of older versions: stored configurations without the setting have this value.
FORMER_DEFAULTS = {"precision": "fp32"}
HARD = ("top_k", "threshold", "top_fraction")


def upgraded(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored configuration with the behaviour of its version, in today's settings.

    In older versions SMART's noise was added to the word embeddings, its radius and step size were
    not shares, similarity labels were from 0 to 1 in the loss, and the precision was fp32. The last
    two apply only to a run's configuration, which is complete.
    """
    found = renamed(content)
    if is_complete(content):
        found = {"similarity_scale": 1.0, **FORMER_DEFAULTS, **found}
    weights = content.get("smart_weight")
    if isinstance(weights, Mapping) and any(weights.values()) and "smart_place" not in content:
        found.pop("smart_radius", None)
        found.pop("smart_step_size", None)
        found["smart_place"] = "words"
    return found


def of_file(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a user's file, which may be a run's configuration of any version."""
    return upgraded(content) if is_complete(content) else renamed(content)


def is_complete(content: Mapping[str, Any]) -> bool:
    """Return whether settings are those of a run's configuration, not of a user's own file."""
    return all(key in content for key in OF_EVERY_RUN)


def renamed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with today's names; hard negatives were one mapping."""
    found = dict(content)
    for name, former in FORMER_NAMES.items():
        if former in found and name in found:
            raise RunError(f"{former}: expected only its new name {name}, found both")
        if former in found:
            found[name] = found.pop(former)
    hard = found.get("hard_negatives")
    if isinstance(hard, Mapping):
        if unknown := [name for name in hard if name not in HARD]:
            raise RunError(f"hard_negatives: expected {', '.join(HARD)}, found {unknown[0]!r}")
        del found["hard_negatives"]
        found |= {f"hard_{name}": hard[name] for name in HARD if name in hard}
    return found


def legacy_config(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the setting names of older versions; they name run folders."""
    found = dict(content)
    for name, former in FORMER_NAMES.items():
        if name in found:
            found[former] = found.pop(name)
    hard = {name: found.pop(f"hard_{name}", None) for name in HARD}
    given = {name: value for name, value in hard.items() if value is not None}
    return found | ({"hard_negatives": given} if given else {})
