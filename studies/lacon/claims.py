"""Whether LaCon's claims hold here, from the cells that are kept."""

from __future__ import annotations

from collections.abc import Sequence

from studies.claims import (
    ASKED,
    Table,
    between,
    by_seed,
    claims_table,
    differences,
    means_by_seed,
)
from studies.lacon.experiments import (
    ABLATED,
    ABLATIONS,
    AT_MEAN,
    CLASS_METHODS,
    CLASS_TASKS,
    CURVE,
    FEW_METHODS,
    FEW_TASKS,
    IMBALANCED,
    METHODS,
    RATIOS,
    RIVALS,
    SHOTS,
    TASKS,
)
from studies.lacon.results import Results
from studies.seeds import SeedCell

OURS = ("lacon", "lacon-fusion")
AT_TOKENS = ("leam", "lsan", "lacon-fusion")  # which are also held against CE at the mean
PARTS = ("single-head", "no-icl", "no-lcl", "no-ler", "no-projection")


def method_claims(results: Results) -> Table:
    """LaCon against each rival (Tables 2 and 7)."""
    pairs = [(own, rival) for own in OURS for rival in RIVALS]
    return claims_table(method_differences(results, [*pairs, ("lacon-fusion", "lacon")]))


def own_claims(results: Results) -> Table:
    """What the paper does not ask: whether a gain is that of looking at all tokens, or of names."""
    pairs = [(own, "ce-mean") for own in (*AT_TOKENS, "lacon-mean")]
    found = method_differences(results, [*pairs, ("lacon-fusion", "lacon-mean")])
    few = {m: [results.cells.few_shot(task, 20, m) for task in FEW_TASKS] for m in FEW_METHODS}
    names = "few-shot: labels begin at names - at random"
    found[names] = differences(results.of, few["names"], few["lacon"])
    return claims_table(found, asked=ASKED)


def method_differences(
    results: Results, pairs: Sequence[tuple[str, str]]
) -> dict[str, list[float]]:
    """Of main cells, over the tasks."""
    titles = METHODS | AT_MEAN
    main = {m: [results.cells.main(task, m) for task in TASKS] for m in titles}
    return {
        f"{titles[one]} - {titles[other]}": differences(results.of, main[one], main[other])
        for one, other in pairs
    }


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
        f"few-shot, {CURVE}: gain with {SHOTS[0]} - with {SHOTS[-1]} a class": by_seed(*ends),
    }


def imbalance_differences(results: Results) -> dict[str, list[float]]:
    """Means over the ratios; at a ratio of 1 neither class is the rarer one."""
    found: dict[str, list[float]] = {}
    for task in IMBALANCED:
        pairs = {
            ratio: [results.cells.imbalanced(task, ratio, m) for m in ("lacon", "ce")]
            for ratio in RATIOS
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
            found[title] = found.get(title, []) + means_by_seed(gains)
    return found


def class_differences(results: Results) -> dict[str, list[float]]:
    """LaCon-fusion is above the others over numbers of classes, all fall as it grows (4.5)."""
    found = {}
    for task, counts in CLASS_TASKS.items():
        cells = {
            m: [results.cells.first_classes(task, c, m) for c in counts] for m in CLASS_METHODS
        }
        for rival in ("ce", "scl"):
            title = f"{task}, {counts[0]} to {counts[-1]} classes: LaCon-fusion - {METHODS[rival]}"
            both = zip(cells["lacon-fusion"], cells[rival], strict=True)
            found[title] = means_by_seed(gain(results, *pair) for pair in both)
        for method in CLASS_METHODS:
            first, last = (results.of(cells[method][place]) for place in (0, -1))
            title = f"{task}, {METHODS[method]}: {counts[0]} - {counts[-1]} classes"
            found[title] = by_seed(first, last)
    return {title: several for title, several in found.items() if several}


def gain(results: Results, one: SeedCell, other: SeedCell) -> dict[int, float]:
    return between(results.of(one), results.of(other))
