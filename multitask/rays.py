"""Whether EPO brought pull and push onto the ray of their preference, read from telemetry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multitask.combiners.nested import VERTEX
from multitask.telemetry import read_steps
from tasks import task_and_term

LAST = 100  # steps whose mean is compared
FAR = 0.1  # apart: farther, and mostly at a vertex, the ray counts as out of reach


def pull_and_push(file: Path, preference: Sequence[float]) -> dict[str, dict[str, Any]]:
    """Of each task with both: preference times objective at the end, mean over the last steps.

    `apart` is their difference in shares of the larger one, 0 on the ray; `at_a_vertex` the share
    of those steps in which one of the two had no say; `steps` how many steps that are. The
    objectives are counted from their ideal points (Mahapatra and Rajan, 2020, on their ray).
    """
    found: dict[str, tuple[list[list[float]], list[bool]]] = {}
    for line in read_steps(file):
        for name in line["losses"]:
            task, term = task_and_term(name)
            if term == "pull":
                both = [line["losses"][f"{task}/{one}"] for one in ("pull", "push")]
                given = [line["weights"][f"{task}/{one}"] for one in ("pull", "push")]
                losses, vertices = found.setdefault(task, ([], []))
                losses.append(both)
                vertices.append(max(given) > VERTEX * sum(given))
    return {
        task: told(np.array(losses[-LAST:]) * np.array(preference), vertices[-LAST:])
        for task, (losses, vertices) in found.items()
    }


def told(scaled: np.ndarray, vertices: Sequence[bool]) -> dict[str, Any]:
    pull, push = (float(value) for value in scaled.mean(0))
    top = max(pull, push)
    return {
        "steps": len(scaled),
        "pull": round(pull, 6),
        "push": round(push, 6),
        "apart": round(abs(pull - push) / top, 4) if top > 0 else 0.0,
        "at_a_vertex": round(float(np.mean(vertices)), 4),
    }


def ray_text(task: str, found: dict[str, Any]) -> str:
    """A line for people."""
    line = (
        f"{task}: preference x pull and push, last {found['steps']} steps: {found['pull']:.4f} "
        f"and {found['push']:.4f}, {found['apart']:.0%} apart"
    )
    if found["apart"] > FAR and found["at_a_vertex"] > 0.5:
        line += f"; at a vertex in {found['at_a_vertex']:.0%} of them: the ray is out of reach here"
    return line
