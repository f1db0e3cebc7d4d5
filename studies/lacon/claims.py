"""Whether LaCon's claims hold here, from the cells that are kept."""

from __future__ import annotations

import numpy as np

from studies.claims import Table, between, by_seed, claims_table, differences
from studies.lacon.experiments import (
    ABLATED,
    ABLATIONS,
    AT_MEAN,
    CLASS_TASKS,
    CURVE,
    FEW_METHODS,
    FEW_TASKS,
    IMBALANCED,
    METHODS,
    RATIOS,
    SHOTS,
    TASKS,
)
from studies.lacon.results import Results
from studies.seeds import SeedCell

RIVALS = ("ce", "leam", "lsan", "cl", "scl")
OURS = ("lacon", "lacon-fusion")
AT_TOKENS = ("leam", "lsan", "lacon-fusion")  # which are also held against CE at the mean
PARTS = ("single-head", "no-icl", "no-lcl", "no-ler", "no-projection")


def method_claims(results: Results) -> Table:
    """LaCon against each rival, and what is left of a gain where both look at all tokens."""
    titles = METHODS | AT_MEAN
    pairs = [(own, rival) for own in OURS for rival in RIVALS]
    pairs.append(("lacon-fusion", "lacon"))
    pairs += [(own, "ce-mean") for own in (*AT_TOKENS, "lacon-mean")]
    pairs.append(("lacon-fusion", "lacon-mean"))
    main = {m: [results.cells.main(task, m) for task in TASKS] for m in titles}
    return claims_table(
        {
            f"{titles[one]} - {titles[other]}": differences(results.of, main[one], main[other])
            for one, other in pairs
        }
    )


def part_claims(results: Results) -> Table:
    """Tables 3 and 6: each part of LaCon, and whether its projection alone were enough."""
    cells = results.cells
    less = {v: [cells.ablation(t, v) for t in ABLATED] for v in (*PARTS, "projection")}
    whole = [cells.main(task, "lacon") for task in ABLATED]
    found = {}
    for variant in PARTS:
        what = ABLATIONS[variant][0].replace("- ", "LaCon without ")
        found[f"LaCon - {what}"] = differences(results.of, whole, less[variant])
    for term in ("lcl", "ler"):
        title = f"LaCon without {term.upper()} - without ICL"
        found[title] = differences(results.of, less[f"no-{term}"], less["no-icl"])
    plain = [cells.main(task, "ce") for task in ABLATED]
    projected = less["projection"]
    found["LaCon - CE behind the projection head"] = differences(results.of, whole, projected)
    found["CE - CE behind the projection head"] = differences(results.of, plain, projected)
    return claims_table(found)


def protocol_claims(results: Results) -> Table:
    """Few examples, imbalance, numbers of classes: whether LaCon gains, and more where it should.

    A gain is LaCon's figure less that of cross-entropy with the same seed.
    """
    return claims_table(
        few_shot_differences(results) | imbalance_differences(results) | class_differences(results)
    )


def few_shot_differences(results: Results) -> dict[str, list[float]]:
    cells = results.cells
    few = {m: [cells.few_shot(task, 20, m) for task in FEW_TASKS] for m in FEW_METHODS}
    ends = (
        gain(results, cells.few_shot(CURVE, shots, "lacon"), cells.few_shot(CURVE, shots, "ce"))
        for shots in (SHOTS[0], SHOTS[-1])
    )
    return {
        "few-shot: LaCon - CE": differences(results.of, few["lacon"], few["ce"]),
        "few-shot: labels begin at names - at random": differences(
            results.of, few["names"], few["lacon"]
        ),
        f"few-shot, {CURVE}: gain with {SHOTS[0]} - with {SHOTS[-1]} a class": by_seed(*ends),
    }


def imbalance_differences(results: Results) -> dict[str, list[float]]:
    cells = results.cells
    pairs = [
        tuple(cells.imbalanced(task, ratio, m) for m in ("lacon", "ce"))
        for task in IMBALANCED
        for ratio in RATIOS[1:]
    ]
    gains: dict[str, list[float]] = {"all": [], "minority": [], "more": []}
    for ours, theirs in pairs:
        gains["all"] += by_seed(results.of(ours), results.of(theirs))
        (minor, major), (other_minor, other_major) = map(results.f1_by_class, (ours, theirs))
        gains["minority"] += by_seed(minor, other_minor)
        gains["more"] += by_seed(between(minor, other_minor), between(major, other_major))
    return {
        "imbalance: LaCon - CE": gains["all"],
        "imbalance, F1 of the minority: LaCon - CE": gains["minority"],
        "imbalance, F1: gain of the minority - of the majority": gains["more"],
    }


def class_differences(results: Results) -> dict[str, list[float]]:
    found = {}
    for task, counts in CLASS_TASKS.items():
        cells = {
            method: [results.cells.first_classes(task, count, method) for count in counts]
            for method in ("ce", "scl", "lacon-fusion")
        }
        for rival in ("ce", "scl"):
            title = f"{task}, {counts[0]} to {counts[-1]} classes: LaCon-fusion - {METHODS[rival]}"
            found[title] = differences(results.of, cells["lacon-fusion"], cells[rival])
        first, last = (
            gain(results, cells["lacon-fusion"][place], cells["ce"][place]) for place in (0, -1)
        )
        title = f"{task}: gain over CE with {counts[-1]} - with {counts[0]} classes"
        found[title] = by_seed(last, first)
    return {title: several for title, several in found.items() if several}


def gain(results: Results, one: SeedCell, other: SeedCell) -> dict[int, float]:
    return between(results.of(one), results.of(other))


def ahead(results: Results) -> list[str]:
    """A sentence each for LaCon and LaCon-fusion: on how many tasks it leads all rivals' means."""
    sentences = []
    for own in OURS:
        led, compared = [], 0
        for task in TASKS:
            means = {
                method: float(np.mean(list(found.values())))
                for method in (own, *RIVALS)
                if (found := results.of(results.cells.main(task, method)))
            }
            if len(means) < len((own, *RIVALS)):
                continue
            compared += 1
            if means[own] > max(means[rival] for rival in RIVALS):
                led.append(task)
        if compared:
            names = f" ({', '.join(led)})" if led else ""
            sentences.append(
                f"{METHODS[own]} is ahead of all five rivals on {len(led)} of {compared} "
                f"tasks{names}."
            )
    return sentences
