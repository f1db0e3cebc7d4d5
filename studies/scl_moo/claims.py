"""Tests of SCL-MOO's claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from studies.claims import NOT_LEARNT, Claim, PairReasons, Pairs, between, claim_of, shared_seeds
from studies.fairness import (
    at_end_reason,
    balance_reason,
    chosen_value_reason,
    end_of_grid_reason,
    learnt_by,
    limit_reason,
    pooling_reason,
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
PUSH = "more weight on push than on pull is better"
STABLE = "the temperature matters less than with CE + SCL"  # as we read Figure 5b
LITTLE = "a small weight of the contrastive losses is better"
UNLIKE_SCL = "a small weight of the contrastive losses helps more than with CE + SCL"
PLACES = {PUSH: "Figure 5a", STABLE: "Figure 5b", LITTLE: "Figure 5c", UNLIKE_SCL: "Figure 5c"}
RIVALS = ("scl", f"scl{scl_moo.BALANCED}")
LOW, *_, HIGH = scl_moo.GRID


@dataclass(frozen=True)
class SweptTest:
    """A test of one setting of one or two methods: its claim, its line, and its pairs."""

    text: str
    line: str
    setting: str
    methods: tuple[str, ...]
    pairs: Pairs


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
    """Return whether single settings matter as in section 6.

    Figure 5 is on dev. These tests are on test, because dev may have chosen a value of the sweep.
    """
    tests = [test for one in OURS for test in tests_of_sweeps(results, one)]
    claims = list[Claim]()
    for text, place in PLACES.items():
        of_claim = [test for test in tests if test.text == text]
        lines = {test.line: test.pairs for test in of_claim}
        further = {test.line: partial(unfair_sweep, results, test) for test in of_claim}
        claims.append(claim_of(text, f"{place}, here on test", lines, further=further))
    return claims


def tests_of_sweeps(results: Accuracies, method: str) -> Iterator[SweptTest]:
    """Yield the tests of section 6 of LS or EPO."""
    title, ends = TITLES[method], f"{LOW:g} - {HIGH:g}"
    push, little = (gain_of_low(results, s, method) for s in ("scl_preference", "scl_weight"))
    yield SweptTest(PUSH, f"{title}, r1 {ends}", "scl_preference", (method,), push)
    yield SweptTest(LITTLE, f"{title}, lambda {ends}", "scl_weight", (method,), little)
    for rival in RIVALS:
        both, other = (method, rival), TITLES[rival]
        more = between(little, gain_of_low(results, "scl_weight", rival))
        line = f"{title} - {other}, gain of lambda {LOW:g} over {HIGH:g}"
        yield SweptTest(UNLIKE_SCL, line, "scl_weight", both, more)
        less = between(*(effect(results, "scl_temperature", one) for one in (rival, method)))
        yield SweptTest(STABLE, f"{other} - {title}, effect of tau", "scl_temperature", both, less)


def gain_of_low(results: Accuracies, setting: str, method: str) -> dict[int, float]:
    """Return the accuracy with the lowest value of a setting less that with the highest one."""
    low, high = (results.sweep(setting, value, method, split="test") for value in (LOW, HIGH))
    return between(low, high)


def effect(results: Accuracies, setting: str, method: str) -> dict[int, float]:
    """Return the accuracy with the best value of a setting less that with the worst one.

    The other seeds say for each seed which values these are, so that without an effect the
    expectation is zero. The figures of two seeds depend on each other, and noise hides a small
    effect, so that a test of them is not fair. All values must have a seed.
    """
    points = [results.sweep(setting, value, method, split="test") for value in scl_moo.GRID]
    found, seeds = dict[int, float](), shared_seeds(points)
    for seed in seeds if len(seeds) > 1 else ():
        means = [fmean(point[other] for other in seeds - {seed}) for point in points]
        best, worst = (points[means.index(end)] for end in (max(means), min(means)))
        found[seed] = best[seed] - worst[seed]
    return found


def unfair_sweep(results: Accuracies, test: SweptTest, pairs: Pairs) -> list[str]:
    """Return the conditions of a fair test that sweeps of a method, or of two, do not meet."""
    searched = [search_of(results, *scl_moo.SWEPT, method) for method in test.methods]
    cells = [results.cells.few_shot(*scl_moo.SWEPT, method) for method in test.methods]
    learnt, tuned = learnt_by(results.stored, cells, results.of), results.cells.tuned
    return [
        *unlike(results, test.methods[0], test.methods[-1], few=True, searched=searched),
        *[NOT_LEARNT] * (not learnt),
        *at_end_reason(results.stored, searched, tuned),
        *chosen_value_reason(searched, tuned, test.setting, (LOW, HIGH)),
        *["best and worst values are chosen by the same seeds"] * (test.text == STABLE),
    ]


def search_of(results: Accuracies, task: str, shots: int | None, method: str) -> Search:
    """Return the search of a method's settings with a number of examples, or with all of them."""
    cells = results.cells
    one = cells.full(task, method) if shots is None else cells.few_shot(task, shots, method)
    return next(search for search in cells.searches if search.cell.name == one.name)
