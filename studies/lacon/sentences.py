"""Sentences of the LaCon page on what its tables show."""

from __future__ import annotations

from statistics import fmean, stdev

from studies.claims import shared_seeds
from studies.lacon import cells as lacon
from studies.lacon.claims import OURS
from studies.lacon.tables import Scores, swept


def lead_text(results: Scores) -> str:
    """Describe on how many tasks LaCon's means exceed all rivals', over the shared seeds."""
    sentences = []
    for own in OURS:
        led, compared = [], 0
        for task in lacon.TASKS:
            found = {m: results.of(results.cells.main(task, m)) for m in (own, *lacon.RIVALS)}
            seeds = shared_seeds(found.values())
            if not seeds:
                continue
            means = {m: fmean(figures[seed] for seed in seeds) for m, figures in found.items()}
            compared += 1
            if means[own] > max(means[rival] for rival in lacon.RIVALS):
                led.append(task)
        if compared:
            names = f" ({', '.join(led)})" if led else ""
            sentences.append(
                f"{lacon.METHODS[own]} is ahead of all five rivals on {len(led)} of {compared} "
                f"tasks{names}."
            )
    return " ".join(sentences)


def stability_text(results: Scores) -> str:
    """Describe whether few-shot LaCon varies less over seeds than CE, as section 4.1 states."""
    found = []
    for task in lacon.FEW_TASKS:
        for count in lacon.shots_of(task):
            figures = [results.of(results.cells.few_shot(task, count, m)) for m in ("lacon", "ce")]
            seeds = sorted(set(figures[0]) & set(figures[1]))
            if len(seeds) > 1:
                ours, theirs = (stdev(one[seed] for seed in seeds) for one in figures)
                found.append(ours < theirs)
    if not found:
        return ""
    return (
        f"Over seeds, LaCon varies less than CE in {sum(found)} of {len(found)} rows; the paper "
        "calls it more stable."
    )


def best_settings_text(results: Scores) -> str:
    """Describe each swept setting's best value and the range of its means (section 4.4)."""
    sentences = []
    for what, (_, points) in lacon.SWEEPS.items():
        for task in lacon.SWEPT:
            means = {v: fmean(f.values()) for v in points if (f := swept(results, task, what, v))}
            if len(means) > 1:
                best = max(means, key=lambda value: means[value])
                apart = 100 * (max(means.values()) - min(means.values()))
                sentences.append(f"{what}, {task}: best at {best:g}, means {apart:.1f} apart.")
    return " ".join(sentences)
