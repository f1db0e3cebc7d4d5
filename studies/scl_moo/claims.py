"""Tests of SCL-MOO's claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from studies.claims import (
    NOT_LEARNT,
    Claim,
    PairReasons,
    Pairs,
    balance_reason,
    between,
    claim_of,
    end_of_grid_reason,
    learnt_by,
    limit_reason,
    pooling_reason,
    shared_seeds,
    tuning_reason,
)
from studies.scl_moo import cells as scl_moo
from studies.scl_moo.tables import PRINTED, TITLES, Accuracies
from studies.tuning import Search

OURS = ("ls", "epo")
AGAINST = ("ce", "scl", *scl_moo.CONTROLS)
OF_CE = ("ce", f"ce{scl_moo.BALANCED}")
BETTER = "LS and EPO are better than the baselines"
LARGER = "the gain over cross-entropy is larger with fewer examples"
FALLING = "sst2"  # the task of the paper's figures for this claim
PUSH = "minimising the similarity between classes is crucial"
STABLE = "the temperature changes accuracy less than with CE + SCL"
LITTLE = "a small weight of the objectives is better, unlike with CE + SCL"


def method_claims(results: Accuracies) -> list[Claim]:
    """Return whether LS and EPO are better than CE and CE + SCL, and more so with few examples."""
    pairs = {(one, other): results.pairs(one, other) for one in OURS for other in AGAINST}
    few, full = ({names: both[place] for names, both in pairs.items()} for place in (0, 1))
    return [
        method_claim(results, few, few=True),
        method_claim(results, full, few=False),
        fewer_examples_claim(results),
    ]


def method_claim(
    results: Accuracies, differences: Mapping[tuple[str, str], Pairs], few: bool
) -> Claim:
    """Return the claim with few examples or with all, from the differences of two methods."""
    cells = results.cells
    if few:
        every = [
            cells.few_shot(task, shots, method)
            for task in scl_moo.TASKS
            for method in TITLES
            for shots in results.tested_shots(task, method)
        ]
    else:
        every = [cells.full(task, method) for task in scl_moo.FULL for method in TITLES]
    lines, further = dict[str, Pairs](), dict[str, PairReasons]()
    for (one, other), pairs in differences.items():
        line = f"{TITLES[one]} - {TITLES[other]}"
        lines[line], further[line] = pairs, partial(unfair, results, one, other, few)
    what, table = ("few-shot", "Table 2") if few else ("all data, several sets", "Table 3")
    printed = PRINTED["few_shot" if few else "full"]
    known = learnt_by(results.stored, every, results.of)
    return claim_of(f"{BETTER}, {what}", table, lines, (), known, further, printed)


def unfair(results: Accuracies, one: str, other: str, few: bool, pairs: Pairs) -> list[str]:
    """Return the conditions of a fair test of these pairs that two methods do not meet."""
    mine, theirs = list[Search](), list[Search]()
    for task in dict.fromkeys(task for task, _ in pairs):
        shots = results.tested_shots(task, one, other) if few else (None,)
        mine += [search_of(results, task, count, one) for count in shots]
        theirs += [search_of(results, task, count, other) for count in shots]
    tuned = results.cells.tuned
    at_end = end_of_grid_reason(results.stored, mine, theirs, tuned, pairs)
    return [*unlike(results, one, other, few, [*mine, *theirs]), *at_end]


def unlike(
    results: Accuracies, one: str, other: str, few: bool, searched: Sequence[Search]
) -> list[str]:
    """Return the reasons against a fair test that settings, batches and epochs give."""
    cells, kind = results.cells, "few-shot" if few else "full"
    ours, plain = (
        (cells.few_shot("sst2", scl_moo.TUNED_SHOTS, m) if few else cells.full("sst2", m)).config
        for m in (one, other)
    )
    tuned = any(name.startswith(kind) for name in cells.tuned)
    of_control = tuned and other in scl_moo.CONTROLS
    untuned = scl_moo.CONTROL_NOT_TUNED if of_control else scl_moo.NOT_TUNED
    reasons = [
        *pooling_reason(plain),
        *limit_reason(plain, "task"),
        *tuning_reason(results.stored, searched, cells.tuned, untuned),
        *balance_reason(ours, plain, "LS and EPO have"),
    ]
    if few and plain.epochs <= scl_moo.EPOCHS:
        reasons.append(f"{plain.epochs} epochs, not until the loss is flat")
    return reasons


def fewer_examples_claim(results: Accuracies) -> Claim:
    """Return whether gains over cross-entropy on SST-2 are larger with fewer examples."""
    lines, further = dict[str, Pairs](), dict[str, PairReasons]()
    for one in OURS:
        for other in OF_CE:
            fewest, most = ends = results.ends(FALLING, one, other)
            gains = (results.gain(FALLING, shots, one, other) for shots in ends)
            line = f"{TITLES[one]} - {TITLES[other]} on {FALLING}, gain with {fewest} - with {most}"
            lines[line] = {(FALLING, seed): gain for seed, gain in between(*gains).items()}
            further[line] = partial(unfair_ends, results, one, other, ends)
    return claim_of(LARGER, "section 5", lines, further=further)


def unfair_ends(
    results: Accuracies, one: str, other: str, ends: tuple[int, int], pairs: Pairs
) -> list[str]:
    """Return the conditions that the gains of a method at two numbers of examples do not meet."""
    tested = results.tested_shots(FALLING, one, other)
    own = {*ends} <= {*tested}
    mine, theirs = (
        [search_of(results, FALLING, count, method) for count in (ends if own else tested)]
        for method in (one, other)
    )
    reasons = unlike(results, one, other, few=True, searched=[*mine, *theirs])
    for shots in ends:
        both = [results.cells.few_shot(FALLING, shots, method) for method in (one, other)]
        if not learnt_by(results.stored, both, results.of):
            reasons.append(f"with {shots} examples, {NOT_LEARNT}")
    if not own:
        return [*reasons, f"settings were chosen with {', '.join(map(str, tested))} examples"]
    # Better settings of the baseline with the fewest examples, or of the method with the most,
    # would lower the difference; those of the other two cells would raise it.
    lower, higher = [theirs[0], mine[1]], [mine[0], theirs[1]]
    tuned = results.cells.tuned
    return [*reasons, *end_of_grid_reason(results.stored, higher, lower, tuned, pairs)]


def sweep_claims(results: Accuracies) -> list[Claim]:
    """Return whether single settings matter as in section 6, by the accuracies of Figure 5."""
    push, stable, little = dict[str, Pairs](), dict[str, Pairs](), dict[str, Pairs]()
    further = dict[str, PairReasons]()
    low, *_, high = scl_moo.GRID
    for one in OURS:
        alone, beside = (partial(unfair_sweep, results, both) for both in ((one,), (one, "scl")))
        title, other = TITLES[one], TITLES["scl"]

        line = f"{title}, r1 {low:g} - {high:g}"
        push[line], further[line] = ends_of_sweep(results, "scl_preference", one), alone

        line = f"{title}, lambda {low:g} - {high:g}"
        gain = ends_of_sweep(results, "scl_weight", one)
        little[line], further[line] = gain, alone
        line = f"{title} - {other}, {line.rpartition(', ')[-1]}"
        gain_of_scl = ends_of_sweep(results, "scl_weight", "scl")
        little[line], further[line] = between(gain, gain_of_scl), beside

        line = f"{other} - {title}, range over tau"
        ranges = (range_of_sweep(results, "scl_temperature", name) for name in ("scl", one))
        stable[line], further[line] = between(*ranges), beside
    return [
        claim_of(text, f"Figure 5{letter}, on dev", lines, further=further)
        for text, letter, lines in ((PUSH, "a", push), (STABLE, "b", stable), (LITTLE, "c", little))
    ]


def ends_of_sweep(results: Accuracies, setting: str, method: str) -> dict[int, float]:
    """Return the accuracy with the lowest value of a setting less that with the highest one."""
    low, *_, high = (results.sweep(setting, value, method) for value in scl_moo.GRID)
    return between(low, high)


def range_of_sweep(results: Accuracies, setting: str, method: str) -> dict[int, float]:
    """Return the range of accuracies over a setting's values, of each seed that has all of them."""
    points = [results.sweep(setting, value, method) for value in scl_moo.GRID]
    figures = {seed: [one[seed] for one in points] for seed in shared_seeds(points)}
    return {seed: max(several) - min(several) for seed, several in figures.items()}


def unfair_sweep(results: Accuracies, methods: Sequence[str], pairs: Pairs) -> list[str]:
    """Return the conditions of a fair test that sweeps of a method, or of two, do not meet."""
    searched = [search_of(results, *scl_moo.SWEPT, method) for method in methods]
    reasons = unlike(results, methods[0], methods[-1], few=True, searched=searched)
    cells = [results.cells.few_shot(*scl_moo.SWEPT, method) for method in methods]
    learnt = learnt_by(results.stored, cells, results.of)
    return [*reasons, *[NOT_LEARNT] * (not learnt)]


def search_of(results: Accuracies, task: str, shots: int | None, method: str) -> Search:
    """Return the search of a method's settings with a number of examples, or with all of them."""
    cells = results.cells
    one = cells.full(task, method) if shots is None else cells.few_shot(task, shots, method)
    return next(search for search in cells.searches if search.cell.name == one.name)
