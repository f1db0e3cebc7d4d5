"""What LaCon's kept cells say in a sentence, where too few seeds are run for a test."""

from __future__ import annotations

from statistics import fmean, stdev

from studies.lacon.claims import OURS
from studies.lacon.experiments import (
    FEW_METHODS,
    FEW_TASKS,
    METHODS,
    RIVALS,
    SWEEPS,
    SWEPT,
    TASKS,
)
from studies.lacon.protocol_tables import swept
from studies.lacon.results import Results
from studies.seeds import shared_seeds


def ahead(results: Results) -> str:
    """On how many tasks LaCon and LaCon-fusion lead all rivals' means, over seeds that all have."""
    sentences = []
    for own in OURS:
        led, compared = [], 0
        for task in TASKS:
            found = {m: results.of(results.cells.main(task, m)) for m in (own, *RIVALS)}
            seeds = shared_seeds(found.values())
            if not seeds:
                continue
            means = {m: fmean(figures[seed] for seed in seeds) for m, figures in found.items()}
            compared += 1
            if means[own] > max(means[rival] for rival in RIVALS):
                led.append(task)
        if compared:
            names = f" ({', '.join(led)})" if led else ""
            sentences.append(
                f"{METHODS[own]} is ahead of all five rivals on {len(led)} of {compared} "
                f"tasks{names}."
            )
    return " ".join(sentences)


def steadier(results: Results) -> str:
    """In few-shot learning: whether LaCon varies less over seeds than CE, as section 4.1 says."""
    found = []
    for task in FEW_TASKS:
        figures = [results.of(results.cells.few_shot(task, 20, m)) for m in ("lacon", "ce")]
        seeds = sorted(set(figures[0]) & set(figures[1]))
        if len(seeds) > 1:
            ours, theirs = (stdev(one[seed] for seed in seeds) for one in figures)
            found.append(ours < theirs)
    if not found:
        return ""
    return (
        f"Over seeds {FEW_METHODS['lacon']} varies less than {FEW_METHODS['ce']} on {sum(found)} "
        f"of {len(found)} tasks; the paper calls it more stable."
    )


def peaks(results: Results) -> str:
    """Of each setting that was swept: its best value, and how far apart the means are (4.4)."""
    sentences = []
    for what, (_, points) in SWEEPS.items():
        for task in SWEPT:
            means = {v: fmean(f.values()) for v in points if (f := swept(results, task, what, v))}
            if len(means) > 1:
                best = max(means, key=lambda value: means[value])
                apart = 100 * (max(means.values()) - min(means.values()))
                sentences.append(f"{what}, {task}: best at {best:g}, means {apart:.1f} apart.")
    return " ".join(sentences)
