"""The distance of a run of SCL-MOO from the ray of EPO's preference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from multitask.combiners.nested import VERTEX
from tasks import task_and_term

LAST = 100  # last steps, whose mean is compared


def ray_distances(
    steps: Iterable[Mapping[str, Any]], preference: Sequence[float]
) -> dict[str, dict[str, Any]]:
    """Return the distance from the ray of each task with pull and push, over the last steps.

    `steps` are the lines of a `telemetry.jsonl`. `pull` and `push` are the means of preference
    times objective. `apart` is the difference as a share of the larger value, 0 on the ray.
    `at_a_vertex` is the share of the `steps` in which one objective had no influence. The
    objectives are measured from their ideal points (the ray of Mahapatra and Rajan, 2020).
    """
    found: dict[str, tuple[list[list[float]], list[bool]]] = {}
    for line in steps:
        for name in line["losses"]:
            task, term = task_and_term(name)
            if term == "pull":
                both = [line["losses"][f"{task}/{one}"] for one in ("pull", "push")]
                given = [line["weights"][f"{task}/{one}"] for one in ("pull", "push")]
                losses, vertices = found.setdefault(task, ([], []))
                losses.append(both)
                vertices.append(max(given) > VERTEX * sum(given))
    return {
        task: ray_summary(np.array(losses[-LAST:]) * np.array(preference), vertices[-LAST:])
        for task, (losses, vertices) in found.items()
    }


def ray_summary(scaled: np.ndarray, vertices: Sequence[bool]) -> dict[str, Any]:
    pull, push = (float(value) for value in scaled.mean(0))
    top = max(pull, push)
    return {
        "steps": len(scaled),
        "pull": round(pull, 6),
        "push": round(push, 6),
        "apart": round(abs(pull - push) / top, 4) if top > 0 else 0.0,
        "at_a_vertex": round(float(np.mean(vertices)), 4),
    }
