"""What EPO did in SCL-MOO's runs: how its steps ended, its weights, and what its space costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from studies.claims import Table
from studies.scl_moo import SPACES, TASKS
from studies.scl_moo_results import Results
from studies.seeds import kept, shown


def status_table(results: Results) -> Table:
    """What EPO did in its steps, and the weights it gave to pull and push, by task."""
    rows = []
    for task in TASKS:
        found = [
            seed
            for one in results.cells.every()
            if (one.config.objective, one.config.gradients) == ("epo", "representation")
            and one.config.tasks == (task,)
            for seed in kept(one, results.folder).values()
        ]
        if found:
            rows.append([task, *steps_and_weights(found, task)])
    return ["", "EPO's steps", "mean weight of pull / push"], rows


def steps_and_weights(seeds: Sequence[Mapping[str, Any]], task: str) -> tuple[str, str]:
    """Shares of what EPO's steps did; the mean shares of pull and push in the weights of a run."""
    counts: Counter[str] = Counter()
    weights = []
    for found in seeds:
        counts.update(found["combiner_steps"])
        given = [found["mean_weights"][f"{task}/{name}"] for name in ("pull", "push")]
        weights.append((given[0] / sum(given), given[1] / sum(given)))
    total = counts.total()
    did = ", ".join(f"{status} {100 * n / total:.0f} %" for status, n in counts.most_common())
    pull, push = np.mean(weights, axis=0)
    return did, f"{pull:.2f} / {push:.2f}"


def spaces_table(results: Results) -> Table:
    """EPO with the Gram matrix of either space, on 50 examples, by the seeds that both have."""
    rows = []
    for task in SPACES:
        spaces = {
            "representation": results.cells.few_shot(task, 50, "epo"),
            "parameters": results.cells.at_parameters(task),
        }
        there = {name: kept(one, results.folder) for name, one in spaces.items()}
        seeds = sorted(set.intersection(*(set(found) for found in there.values())))
        for name, found in there.items():
            if both := [found[seed] for seed in seeds]:
                accuracy = shown(one["test"][task]["accuracy"] for one in both)
                seconds = shown((one["training_seconds"] for one in both), scale=1)
                rows.append([task, name, accuracy, seconds, *steps_and_weights(both, task)])
    header = ["", "Gram matrix of", "test accuracy", "seconds of training"]
    return [*header, "EPO's steps", "mean weight of pull / push"], rows
