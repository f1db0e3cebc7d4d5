"""What EPO did in SCL-MOO's runs: how its steps ended, its weights, and what its space costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from studies.claims import Table
from studies.scl_moo.experiments import SHOTS, SPACES, TASKS
from studies.scl_moo.results import Results
from studies.seeds import kept, shown

HEADER = ["EPO's steps", "mean weight of pull / push", "apart"]


def status_table(results: Results) -> Table:
    """What EPO did, by task, with few examples and with all; sweeps apart."""
    rows = []
    for task in TASKS:
        for where, cells in (
            ("few-shot", [results.cells.few_shot(task, shots, "epo") for shots in SHOTS]),
            ("all data", [results.cells.full(task, "epo")]),
        ):
            runs = [run for one in cells for run in kept(one, results.folder).values()]
            if runs:
                rows.append([task, where, str(len(runs)), *told(runs, task)])
    return ["", "", "runs", *HEADER], rows


def told(runs: Sequence[Mapping[str, Any]], task: str) -> list[str]:
    """Means over runs: shares of what the steps did, weights among pull and push, and `apart`."""
    shares: dict[str, float] = {}
    weights = []
    for run in runs:
        total = sum(run["combiner_steps"].values())
        for status, steps in run["combiner_steps"].items():
            shares[status] = shares.get(status, 0) + steps / total / len(runs)
        given = [run["mean_weights"][f"{task}/{name}"] for name in ("pull", "push")]
        weights.append((given[0] / sum(given), given[1] / sum(given)))
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    did = ", ".join(f"{status} {100 * share:.0f} %" for status, share in ranked)
    pull, push = np.mean(weights, axis=0)
    apart = np.mean([run["rays"][task]["apart"] for run in runs])
    return [did, f"{pull:.2f} / {push:.2f}", f"{100 * apart:.0f} %"]


def spaces_table(results: Results) -> Table:
    """EPO with the Gram matrix of either space, on 50 examples, by the seeds that both have.

    Where one of the two is not there yet, the other alone.
    """
    rows = []
    for task in SPACES:
        spaces = {
            "representation": results.cells.few_shot(task, 50, "epo"),
            "parameters": results.cells.at_parameters(task),
        }
        found = {name: kept(one, results.folder) for name, one in spaces.items()}
        there = {name: runs for name, runs in found.items() if runs}
        seeds = sorted(set.intersection(*map(set, there.values()))) if there else []
        for name, runs in there.items():
            if both := [runs[seed] for seed in seeds]:
                accuracy = shown(one["test"][task]["accuracy"] for one in both)
                seconds = shown((one["training_seconds"] for one in both), scale=1)
                rows.append([task, name, accuracy, seconds, *told(both, task)])
    return ["", "Gram matrix of", "test accuracy", "seconds of training", *HEADER], rows
