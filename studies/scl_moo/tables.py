"""Tables of the SCL-MOO study: the paper's figures and those of the stored cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from multitask.config_tasks import plain_tasks
from reports.tables import Table, beside
from studies.claims import (
    Pairs,
    beside_paper,
    between,
    differences,
    mean_per_seed,
    select_seeds,
    shown,
)
from studies.results import Cell, Results
from studies.scl_moo import cells as scl_moo
from studies.study import absent_tasks, printed
from tasks import data_folder


@dataclass(frozen=True)
class Accuracies:
    """Accuracies of the stored cells by seed, of a finished or unfinished study."""

    cells: scl_moo.Experiments
    stored: Results

    def of(self, one: Cell, split: str = "test") -> dict[int, float]:
        (task,) = one.config.tasks
        return self.stored.values(one, split, task, "accuracy")

    def few_shot(self, task: str, shots: int, method: str) -> dict[int, float]:
        return self.of(self.cells.few_shot(task, shots, method))

    def full(self, task: str, method: str) -> dict[int, float]:
        return self.of(self.cells.full(task, method))

    def tested_shots(self, task: str, *methods: str) -> tuple[int, ...]:
        """Return the numbers of examples that test the claims about a task and these methods.

        If settings were chosen on dev, only the numbers that they were chosen with for each method
        do, or else for one of them: others would say how well settings carry over, not which method
        is better.
        """
        chosen = [
            {n for n in scl_moo.SHOTS if scl_moo.few_shot_name(task, n, m) in self.cells.tuned}
            for m in methods
        ]
        own = set.intersection(*chosen) or set.union(*chosen)
        return tuple(sorted(own)) or scl_moo.SHOTS

    def ends(self, task: str, method: str, other: str) -> tuple[int, int]:
        """Return the fewest and the most examples that test two methods; of all, if it is one."""
        tested = self.tested_shots(task, method, other)
        fewest, *_, most = tested if len(tested) > 1 else scl_moo.SHOTS
        return fewest, most

    def gain(self, task: str, shots: int, method: str, other: str) -> dict[int, float]:
        """Return by how much a method is above another one with a number of examples, by seed."""
        return between(*(self.few_shot(task, shots, name) for name in (method, other)))

    def pairs(self, method: str, other: str) -> tuple[Pairs, Pairs]:
        """Return differences of two methods over (task, seed) pairs: few-shot, then all data.

        A few-shot pair is the mean over the tested numbers of examples, over seeds that have all
        of those with figures.
        """
        means: dict[tuple[str, int], float] = {}
        for task in scl_moo.TASKS:
            tested = self.tested_shots(task, method, other)
            gains = mean_per_seed(self.gain(task, shots, method, other) for shots in tested)
            means |= {(task, seed): gain for seed, gain in gains.items()}
        first, second = (
            [self.cells.full(t, name) for t in scl_moo.TASKS] for name in (method, other)
        )
        return means, differences(self.of, first, second)

    def swept(self) -> bool:
        """Return whether a cell of Figure 5 is finished, other than those of the tables."""
        return any(
            self.stored.figures_by_seed(one)
            for one in self.cells.every()
            if one.name.startswith("sweep-")
        )

    def sweep(
        self, setting: str, value: float, method: str, split: str = "dev"
    ) -> dict[int, float]:
        """Return accuracies of the sweep's seeds only, by default on dev as in the paper."""
        found = self.of(self.cells.sweep(setting, value, method), split)
        return select_seeds(found, scl_moo.SWEEP_SEEDS)


PRINTED = printed("scl_moo")
TITLES = scl_moo.METHODS | scl_moo.CONTROLS


def few_shot_table(results: Accuracies) -> Table:
    """Return Table 2 and more: one row per method and number of examples, one column per task."""
    rows = []
    for shots in scl_moo.SHOTS:
        for method, title in TITLES.items():
            cells = [
                beside_paper(
                    PRINTED["few_shot"].get(task, {}).get(str(shots), {}).get(method),
                    results.few_shot(task, shots, method),
                    digits=2,
                )
                for task in scl_moo.TASKS
            ]
            rows.append([title, str(shots), *cells])
    return ["", "N", *scl_moo.TASKS], rows


def full_table(results: Accuracies) -> Table:
    """Return Table 3."""
    rows = []
    for method, title in TITLES.items():
        ours = {task: results.full(task, method) for task in scl_moo.FULL}
        cells = [
            beside_paper(PRINTED["full"][task].get(method), ours[task], 2) for task in scl_moo.FULL
        ]
        known = [
            PRINTED["full"][task][method][0] for task in scl_moo.FULL if method in scl_moo.METHODS
        ]
        printed_mean = f"{np.mean(known):.2f}" if known else ""
        means = [100 * np.mean(list(found.values())) for found in ours.values() if found]
        whole = f"{np.mean(means):.1f}" if len(means) == len(scl_moo.FULL) else ""
        rows.append([title, *cells, beside(printed_mean, whole)])
    return ["", *scl_moo.FULL, "mean of all six"], rows


def data_table(results: Accuracies) -> Table:
    """Return Table 1 for the available files; the paper's test sets are the leaderboard's."""
    rows = []
    for task in scl_moo.TASKS:
        full = results.cells.full(task, "ce")
        if absent_tasks([full]):
            continue
        folder, counts = data_folder(full.config.data), []
        for one in (full, results.cells.few_shot(task, scl_moo.SHOTS[0], "ce")):
            drawn = plain_tasks(one.config)[task]
            found = {split: drawn.read(folder, split) for split in ("train", "dev", "test")}
            counts += [f"{len(found[split]):,}" for split in ("train", "dev", "test")]
            if one is full:
                counts.insert(1, str(found["train"].leaked))
        rows.append([task, *PRINTED["data"][task], *(counts[n] for n in (0, 1, 2, 3, 5, 6))])
    header = ["", "paper: train", "test", "ours: train", "left out", "dev", "test"]
    return [*header, "few-shot: dev", "test"], rows


def data_notice(results: Accuracies) -> str:
    """Return a sentence about tasks with figures whose files are not here; empty without any."""
    cells = results.cells.every()
    run = {next(iter(one.config.tasks)) for one in cells if results.of(one)}
    names = [task for task in absent_tasks(cells) if task in run]
    there = f" The files of {', '.join(names)} are not here, so that their counts are missing."
    return there if names else ""


def sweep_table(results: Accuracies) -> Table:
    """Return Figure 5 as numbers: dev accuracy on SST-2 with 50 examples."""
    rows = []
    for setting, method in scl_moo.swept_methods():
        cells = [shown(results.sweep(setting, value, method).values()) for value in scl_moo.GRID]
        rows.append([scl_moo.SWEEPS[setting], TITLES[method], *cells])
    return ["", "", *(f"{value:g}" for value in scl_moo.GRID)], rows


def chosen_table(results: Accuracies) -> Table:
    """Return each method's point of Figure 5 that is best on dev, with its test accuracy.

    CE has no setting to choose.
    """
    plain = select_seeds(
        results.of(results.cells.few_shot(*scl_moo.SWEPT, "ce")), scl_moo.SWEEP_SEEDS
    )
    rows = []
    for method, title in TITLES.items():
        points = [(s, v) for s, m in scl_moo.swept_methods() if m == method for v in scl_moo.GRID]
        dev = {p: found for p in points if (found := results.sweep(*p, method))}
        if not dev:
            continue
        best = max(dev, key=lambda point: fmean(dev[point].values()))
        test = results.sweep(*best, method, split="test")
        gains = between(test, plain)
        above = f"{sum(gain > 0 for gain in gains.values())} of {len(gains)}"
        cells = [shown(found.values()) for found in (dev[best], test, plain)]
        rows.append([title, f"{scl_moo.SWEEPS[best[0]]} {best[1]:g}", *cells, above])
    return ["", "chosen on dev", "dev", "test", "CE: test", "seeds above CE"], rows


HEADER = ["EPO's steps", "mean weight of pull / push", "apart"]


def status_table(results: Accuracies) -> Table:
    """Return EPO's statuses and weights by task, few-shot and with all data, without sweeps."""
    rows = []
    for task in scl_moo.TASKS:
        for where, cells in (
            ("few-shot", [results.cells.few_shot(task, shots, "epo") for shots in scl_moo.SHOTS]),
            ("all data", [results.cells.full(task, "epo")]),
        ):
            runs = [run for one in cells for run in results.stored.figures_by_seed(one).values()]
            if runs:
                rows.append([task, where, str(len(runs)), *steps_and_weights(runs, task)])
    return ["", "", "runs", *HEADER], rows


def steps_and_weights(runs: Sequence[Mapping[str, Any]], task: str) -> list[str]:
    """Return means over runs: shares of step statuses, weights of pull and push, and `apart`."""
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


def variants_table(results: Accuracies) -> Table:
    """Return the figures of EPO's variants, with 50 examples, over the seeds that all have.

    A variant without figures is left out.
    """
    rows = []
    for task in scl_moo.VARIED:
        cells = {"representation": results.cells.few_shot(task, 50, "epo")}
        cells |= {name: results.cells.variant(task, name) for name in scl_moo.VARIANTS}
        found = {name: results.stored.figures_by_seed(one) for name, one in cells.items()}
        there = {name: runs for name, runs in found.items() if runs}
        seeds = sorted(set.intersection(*map(set, there.values()))) if there else []
        for name, runs in there.items():
            if both := [runs[seed] for seed in seeds]:
                accuracy = shown(one["test"][task]["accuracy"] for one in both)
                seconds = shown((one["training_seconds"] for one in both), scale=1)
                rows.append([task, name, accuracy, seconds, *steps_and_weights(both, task)])
    return ["", "variant", "test accuracy", "seconds of training", *HEADER], rows
