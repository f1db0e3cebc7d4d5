"""Tests of LaCon's claims: paired tests, and sentences for those with too few seeds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from studies.claims import (
    Claim,
    Pairs,
    between,
    claim_of,
    differences,
    limit_reason,
    mean_per_seed,
    pooling_reason,
    shared_seeds,
    tuning_reason,
)
from studies.lacon import cells as lacon
from studies.lacon.tables import Scores, swept
from studies.results import Cell

OURS = ("lacon", "lacon-fusion")
AT_TOKENS = ("leam", "lsan", "lacon-fusion")  # also compared with CE at the mean
PARTS = ("single-head", "no-icl", "no-lcl", "no-ler", "no-projection")


def method_claims(results: Scores) -> Claim:
    """Return whether LaCon is above each rival."""
    pairs = [(own, rival) for own in OURS for rival in lacon.RIVALS]
    lines = method_differences(results, [*pairs, ("lacon-fusion", "lacon")])
    return claim_of("LaCon is better", "Tables 2 and 7", lines, unfair(results))


def own_claims(results: Scores) -> Claim:
    """Test whether gains come from all tokens or from label names, which the paper does not ask."""
    pairs = [(own, "ce-mean") for own in (*AT_TOKENS, "lacon-mean")]
    found = method_differences(results, [*pairs, ("lacon-fusion", "lacon-mean")])
    few = {
        m: [results.cells.few_shot(task, 20, m) for task in lacon.FEW_TASKS]
        for m in lacon.FEW_METHODS
    }
    names = "few-shot: labels begin at names - at random"
    found[names] = differences(results.of, few["names"], few["lacon"])
    reasons = [one for one in unfair(results) if "[CLS]" not in one]
    return claim_of("at the mean of the tokens", "not in the paper", found, reasons)


def method_differences(results: Scores, pairs: Sequence[tuple[str, str]]) -> dict[str, Pairs]:
    """Return the differences between methods in main cells over the tasks."""
    titles = lacon.METHODS | lacon.AT_MEAN
    main = {m: [results.cells.main(task, m) for task in lacon.TASKS] for m in titles}
    return {
        f"{titles[one]} - {titles[other]}": differences(results.of, main[one], main[other])
        for one, other in pairs
    }


def part_claims(results: Scores) -> Claim:
    """Return whether each part of LaCon helps, and whether its projection head is sufficient."""
    cells = results.cells
    less = {v: [cells.ablation(t, v) for t in lacon.ABLATED] for v in (*PARTS, "projection")}
    whole = [cells.main(task, "lacon") for task in lacon.ABLATED]
    found = {}
    for variant in PARTS:
        what = lacon.ABLATIONS[variant][0].replace("- ", "LaCon without ")
        found[f"LaCon - {what}"] = differences(results.of, whole, less[variant])
    for term in ("lcl", "ler"):
        title = f"LaCon without {term.upper()} - without ICL"
        found[title] = differences(results.of, less[f"no-{term}"], less["no-icl"])
    plain = [cells.main(task, "ce") for task in lacon.ABLATED]
    projected = less["projection"]
    found["LaCon - CE behind the projection head"] = differences(results.of, whole, projected)
    found["CE - CE behind the projection head"] = differences(results.of, plain, projected)
    return claim_of("each part helps", "Tables 3 and 6", found, unfair(results))


def protocol_claims(results: Scores) -> Claim:
    """Return whether LaCon gains, and where more: few examples, imbalance, classes.

    A gain is LaCon's figure minus that of cross-entropy with the same seed.
    """
    lines = few_shot_differences(results) | imbalance_differences(results)
    reasons = unfair(results)
    return claim_of("LaCon gains", "4.1, 4.2 and 4.5", lines | class_differences(results), reasons)


def unfair(results: Scores) -> list[str]:
    """Return the conditions of a fair test that the methods' settings do not meet."""
    config = results.cells.main("sst2", "ce").config
    reasons = [*pooling_reason(config), *limit_reason(results.cells.base, "class")]
    if config.epochs < lacon.EPOCHS:
        reasons.append(f"{config.epochs} epochs of {lacon.EPOCHS}")
    searched = results.cells.searches()
    return [
        *reasons,
        *tuning_reason(results.results, searched, results.cells.tuned, lacon.NOT_TUNED),
    ]


def few_shot_differences(results: Scores) -> dict[str, Pairs]:
    cells = results.cells
    few = {m: [cells.few_shot(task, 20, m) for task in lacon.FEW_TASKS] for m in lacon.FEW_METHODS}
    task, shots = lacon.CURVE, lacon.SHOTS
    ends = (
        gain(results, *(cells.few_shot(task, count, method) for method in ("lacon", "ce")))
        for count in (shots[0], shots[-1])
    )
    return {
        "few-shot: LaCon - CE": differences(results.of, few["lacon"], few["ce"]),
        f"few-shot, {task}: gain with {shots[0]} - with {shots[-1]} a class": between(*ends),
    }


def imbalance_differences(results: Scores) -> dict[str, Pairs]:
    """Return means over the ratios; F1 by class omits ratio 1, which has no minority."""
    found: dict[str, dict[tuple[str, int], float]] = {}
    for task in lacon.IMBALANCED:
        pairs = {
            ratio: [results.cells.imbalanced(task, ratio, m) for m in ("lacon", "ce")]
            for ratio in lacon.RATIOS
        }
        uneven = [both for ratio, both in pairs.items() if ratio > 1]
        minor = [between(*(results.f1_by_class(one)[0] for one in both)) for both in uneven]
        major = [between(*(results.f1_by_class(one)[1] for one in both)) for both in uneven]
        more = [between(*both) for both in zip(minor, major, strict=True)]
        several = {
            "imbalance: LaCon - CE": [gain(results, *both) for both in pairs.values()],
            "imbalance, F1 of the minority: LaCon - CE": minor,
            "imbalance, F1 of the majority: LaCon - CE": major,
            "imbalance, F1: gain of the minority - of the majority": more,
        }
        for title, gains in several.items():
            means = {(task, seed): gain for seed, gain in mean_per_seed(gains).items()}
            found[title] = found.get(title, {}) | means
    return dict(found)


def class_differences(results: Scores) -> dict[str, Pairs]:
    """Return differences between methods and between numbers of classes (section 4.5)."""
    found: dict[str, Pairs] = {}
    for task, counts in lacon.CLASS_TASKS.items():
        cells = {
            m: [results.cells.first_classes(task, c, m) for c in counts]
            for m in lacon.CLASS_METHODS
        }
        for rival in ("ce", "scl"):
            compared = f"LaCon-fusion - {lacon.METHODS[rival]}"
            title = f"{task}, {counts[0]} to {counts[-1]} classes: {compared}"
            both = zip(cells["lacon-fusion"], cells[rival], strict=True)
            found[title] = mean_per_seed(gain(results, *pair) for pair in both)
        for method in lacon.CLASS_METHODS:
            first, last = (results.of(cells[method][place]) for place in (0, -1))
            title = f"{task}, {lacon.METHODS[method]}: {counts[0]} - {counts[-1]} classes"
            found[title] = between(first, last)
    return {title: several for title, several in found.items() if several}


def gain(results: Scores, one: Cell, other: Cell) -> dict[int, float]:
    return between(results.of(one), results.of(other))


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
        figures = [results.of(results.cells.few_shot(task, 20, m)) for m in ("lacon", "ce")]
        seeds = sorted(set(figures[0]) & set(figures[1]))
        if len(seeds) > 1:
            ours, theirs = (stdev(one[seed] for seed in seeds) for one in figures)
            found.append(ours < theirs)
    if not found:
        return ""
    return (
        f"Over seeds LaCon varies less than CE on {sum(found)} of {len(found)} tasks; the paper "
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
