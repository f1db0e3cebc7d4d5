"""Tests of LaCon's claims."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from studies.claims import Claim, PairReasons, Pairs, between, claim_of, differences, mean_per_seed
from studies.fairness import (
    at_end_reason,
    chosen_value_reason,
    end_of_grid_reason,
    limit_reason,
    pooling_reason,
    tuning_reason,
)
from studies.lacon import cells as lacon
from studies.lacon import tables
from studies.lacon.tables import Scores
from studies.results import Cell
from studies.tuning import Search, searches_of

OURS = ("lacon", "lacon-fusion")
AT_TOKENS = ("leam", "lsan", "lacon-fusion")  # also compared with CE at the mean
GAIN = "LaCon - CE"
OF_FUSION = {  # ending of a line -> the two methods
    f"LaCon-fusion - {lacon.METHODS[rival]}": ("lacon-fusion", rival) for rival in ("ce", "scl")
}
COMPARED = {GAIN: ("lacon", "ce")} | OF_FUSION
SETTINGS = "tau 0.1 is better than 0.5, 6 heads than 1 or 48, lambda 0.5 than 0 or 1"
BETTER_VALUES = (  # setting, better value, worse value; that lambda 1 is too large is our reading
    ("tau", 0.1, 0.5),
    ("heads", 6, 1),
    ("heads", 6, 48),
    ("lambda", 0.5, 0),
    ("lambda", 0.5, 1),
)
PRINTED_SWEEP = ("rte",)  # the paper says that the others are similar
PARTS = ("single-head", "no-icl", "no-lcl", "no-ler", "no-projection")


def method_claims(results: Scores) -> Claim:
    """Return whether LaCon is above each rival."""
    pairs = [(own, rival) for own in OURS for rival in lacon.RIVALS]
    pairs.append(("lacon-fusion", "lacon"))
    lines = method_differences(results, pairs)
    searched = searches_of(results.cells.searches, "main")
    ends = {
        line: end_of_grid(results, searched, *both) for both, line in zip(pairs, lines, strict=True)
    }
    learnt, reasons = results.learnt(main_cells(results, lacon.TASKS)), unfair(results, searched)
    printed = [task for task in lacon.TASKS if tables.printed_main(task)]
    return claim_of("LaCon is better", "Tables 2 and 7", lines, reasons, learnt, ends, printed)


def own_claims(results: Scores) -> Claim:
    """Test whether gains come from all tokens or from label names, which the paper does not ask."""
    pairs = [(own, "ce-mean") for own in (*AT_TOKENS, "lacon-mean")]
    pairs.append(("lacon-fusion", "lacon-mean"))
    of_tokens = "ce-mean" in results.cells.methods()
    lines = method_differences(results, pairs) if of_tokens else {}
    few = few_shot_cells(results)
    named = {
        "few-shot: labels begin at names - at random": differences(
            results.of, few["names"], few["lacon"]
        )
    }
    text, source = "at the mean of the tokens" if of_tokens else "names", "not in the paper"
    claims = []
    for found, cells, searched in (
        (lines, main_cells(results, lacon.TASKS), searches_of(results.cells.searches, "main")),
        (named, chain(*few.values()), few_shot_searches(results, lacon.FEW)),
    ):
        reasons = unfair(results, searched, pooled_alike=True)
        claims.append(claim_of(text, source, found, reasons, results.learnt(cells)))
    return joined(claims)


def joined(claims: Iterable[Claim]) -> Claim:
    """Return one claim with the tests of several."""
    first, *others = claims
    return replace(first, tests=[*first.tests, *(test for one in others for test in one.tests)])


def main_cells(results: Scores, tasks: Iterable[str]) -> list[Cell]:
    return [one for task in tasks for one in results.main(task)]


def few_shot_cells(results: Scores) -> dict[str, list[Cell]]:
    """Return the cells with `FEW` examples per class, one of each task, by method."""
    return {
        m: [results.cells.few_shot(task, lacon.FEW, m) for task in lacon.FEW_TASKS]
        for m in lacon.FEW_METHODS
    }


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
    learnt = results.learnt([*chain(*less.values()), *main_cells(results, lacon.ABLATED)])
    reasons = unfair(results, searches_of(cells.searches, "main"))
    printed = tables.PRINTED["ablation"]["lacon"]
    return claim_of("each part helps", "Tables 3 and 6", found, reasons, learnt, printed=printed)


def few_shot_claims(results: Scores) -> Claim:
    """Return whether LaCon gains with few examples, and more with fewer (section 4.1)."""
    both, tuned = ("ce", "lacon"), results.cells.tuned
    shots = [results.cells.few_shot(lacon.CURVE, s, m) for s in lacon.SHOTS for m in both]
    few = [*chain(*few_shot_cells(results).values()), *shots]
    searched = {count: few_shot_searches(results, count) for count in lacon.SHOTS}
    first, *_, last = lacon.SHOTS
    elsewhere = lacon.NOT_TUNED
    if f"few-shot-{lacon.CURVE}-{lacon.FEW}-lacon" in tuned:
        elsewhere = f"the settings were chosen with {lacon.FEW} examples per class"
    others = [count for count in lacon.SHOTS if count != lacon.FEW]
    of_few = partial(gain_claim, results, "few examples", "4.1", few)
    of_curve = partial(of_few, (), untuned=elsewhere)  # the paper does not name the set of Figure 2
    return joined(
        [
            of_few(tables.PRINTED["few_shot"], few_shot_differences(results), searched[lacon.FEW]),
            *(of_curve(curve_difference(results, n), searched[n]) for n in others),
            of_curve(curve_trend(results, first, last), searched[first] + searched[last]),
        ]
    )


def imbalance_claims(results: Scores) -> Claim:
    """Return whether LaCon gains with imbalanced classes, and more for the minority (4.2)."""
    cells, both = results.cells, ("ce", "lacon")
    uneven = [
        cells.imbalanced(t, r, m) for t in lacon.IMBALANCED for r in lacon.RATIOS for m in both
    ]
    lines, searched = imbalance_differences(results), searches_of(cells.searches, "imbalanced")
    printed = tables.PRINTED["by_class"]
    return gain_claim(results, "imbalanced classes", "4.2", uneven, printed, lines, searched)


def class_claims(results: Scores) -> Claim:
    """Return whether LaCon-fusion gains over numbers of classes, and which number costs less (4.5).

    Of each method, the figure with the fewest classes minus that with all is tested, too.
    """
    classes = [
        results.cells.first_classes(task, count, method)
        for task, counts in lacon.CLASS_TASKS.items()
        for count in counts
        for method in lacon.CLASS_METHODS
    ]
    lines, searched = class_differences(results), searches_of(results.cells.searches, "main")
    printed = [task for task in lacon.CLASS_TASKS if task in tables.PRINTED["main"]]
    return gain_claim(results, "numbers of classes", "4.5", classes, printed, lines, searched)


def setting_claims(results: Scores) -> Claim:
    """Return whether some values of LaCon's settings are better than others, by section 4.4."""
    lines, further = dict[str, Pairs](), dict[str, PairReasons]()
    every = list[Cell]()
    for what, good, bad in BETTER_VALUES:
        pairs = dict[tuple[str, int], float]()
        for task in lacon.SWEPT:
            two = (tables.swept(results, task, what, value) for value in (good, bad))
            pairs |= of_task(task, between(*two))
            every += [results.cells.sweep(task, what, value) for value in (good, bad)]
        line = f"{what}: {good:g} - {bad:g}"
        lines[line], further[line] = pairs, partial(unfair_sweep, results, what, (good, bad))
    return claim_of(
        SETTINGS, "4.4", lines, (), results.learnt(every), further, printed=PRINTED_SWEEP
    )


def unfair_sweep(results: Scores, what: str, compared: Sequence[float], pairs: Pairs) -> list[str]:
    """Return the conditions of a fair test that a sweep of these tasks does not meet."""
    tasks = {task for task, _ in pairs}
    searched = [
        search
        for search in searches_of(results.cells.searches, "main", "lacon")
        if next(iter(search.cell.config.tasks)) in tasks
    ]
    setting, _ = lacon.SWEEPS[what]
    tuned = results.cells.tuned
    return [
        *unfair(results, searched),
        *at_end_reason(results.stored, searched, tuned),
        *chosen_value_reason(searched, tuned, setting, compared),
        *["other settings were chosen with 6 heads"] * (what == "heads" and bool(tuned)),
    ]


def gain_claim(
    results: Scores,
    where: str,
    source: str,
    cells: Iterable[Cell],
    printed: Collection[str],
    lines: Mapping[str, Pairs],
    searched: Sequence[Search],
    untuned: str = lacon.NOT_TUNED,
) -> Claim:
    """Return a claim about differences, seed by seed.

    `cells` are those that may show that a task is learnt, `searched` the searches of the settings.
    A line that ends with two methods of `COMPARED` compares them, and one of them is behind; other
    lines compare two such differences, or two figures of one method.
    """
    further = {
        line: end_of_grid(results, searched, *both)
        for line in lines
        for ending, both in COMPARED.items()
        if line.endswith(f": {ending}")
    }
    why = unfair(results, searched, untuned)
    text = f"LaCon gains with {where}"
    return claim_of(text, source, lines, why, results.learnt(cells), further, printed)


def unfair(
    results: Scores,
    searched: Sequence[Search],
    untuned: str = lacon.NOT_TUNED,
    pooled_alike: bool = False,
) -> list[str]:
    """Return the conditions of a fair test that the settings from these searches do not meet.

    `untuned` is the reason if settings were not chosen by them. With `pooled_alike` all compared
    methods read all tokens, whatever the pooling of the others.
    """
    config = results.cells.main("sst2", "ce").config
    reasons = [] if pooled_alike else pooling_reason(config)
    reasons += limit_reason(results.cells.base, "class")
    if config.epochs < lacon.EPOCHS:
        reasons.append(f"{config.epochs} epochs of {lacon.EPOCHS}")
    return [*reasons, *tuning_reason(results.stored, searched, results.cells.tuned, untuned)]


def end_of_grid(results: Scores, searched: Sequence[Search], one: str, other: str) -> PairReasons:
    """Return what asks whether the rate of the method that is behind is at an end of its grid."""
    ours, theirs = (
        searches_of(searched, method=method.removesuffix("-mean")) for method in (one, other)
    )
    return partial(end_of_grid_reason, results.stored, ours, theirs, results.cells.tuned)


def few_shot_searches(results: Scores, count: int) -> list[Search]:
    """Return the searches with a number of examples per class."""
    few = searches_of(results.cells.searches, "few-shot")
    return [one for one in few if getattr(one.cell.config.protocol, "shots", None) == count]


def few_shot_differences(results: Scores) -> dict[str, Pairs]:
    few = few_shot_cells(results)
    what = f"few-shot, {lacon.FEW} examples per class: {GAIN}"
    return {what: differences(results.of, few["lacon"], few["ce"])}


def curve_difference(results: Scores, count: int) -> dict[str, Pairs]:
    """Return the gain with a number of examples per class of the task of Figure 2."""
    what = f"few-shot, {count} examples per class: {GAIN}"
    return {what: of_task(lacon.CURVE, curve_gain(results, count))}


def curve_trend(results: Scores, first: int, last: int) -> dict[str, Pairs]:
    """Return how much larger the gain is with one number of examples than with another."""
    more = between(curve_gain(results, first), curve_gain(results, last))
    what = f"few-shot: gain with {first} - with {last} examples per class"
    return {what: of_task(lacon.CURVE, more)}


def curve_gain(results: Scores, count: int) -> dict[int, float]:
    return gain(results, *(results.cells.few_shot(lacon.CURVE, count, m) for m in ("lacon", "ce")))


def of_task(task: str, pairs: Mapping[int, float]) -> Pairs:
    return {(task, seed): gain for seed, gain in pairs.items()}


def imbalance_differences(results: Scores) -> dict[str, Pairs]:
    """Return means over the ratios above 1 that are run, which a title names if not all are."""
    found: dict[str, Pairs] = {}
    for task in lacon.IMBALANCED:
        pairs = {
            ratio: [results.cells.imbalanced(task, ratio, m) for m in ("lacon", "ce")]
            for ratio in lacon.RATIOS
            if ratio > 1
        }
        f1 = [[results.f1_by_class(one) for one in both] for both in pairs.values()]
        minor, major = ([between(one[k], other[k]) for one, other in f1] for k in (0, 1))
        more = [between(*both) for both in zip(minor, major, strict=True)]
        gains = {ratio: gain(results, *both) for ratio, both in pairs.items()}
        run = [str(ratio) for ratio, by_seed in gains.items() if by_seed]
        what = "imbalance"
        if run and len(run) < len(gains):
            what += f" 1 : {', 1 : '.join(run)}"
        several = {
            f"{what}: {GAIN}": list(gains.values()),
            f"{what}, F1 of the minority: {GAIN}": minor,
            f"{what}, F1 of the majority: {GAIN}": major,
            f"{what}, F1: gain of the minority - of the majority": more,
        }
        for title, by_ratio in several.items():
            found[title] = {**found.get(title, {}), **of_task(task, mean_per_seed(by_ratio))}
    return found


def class_differences(results: Scores) -> dict[str, Pairs]:
    """Return differences between methods and between numbers of classes (section 4.5)."""
    found: dict[str, Pairs] = {}
    for task, counts in lacon.CLASS_TASKS.items():
        cells = {
            m: [results.cells.first_classes(task, c, m) for c in counts]
            for m in lacon.CLASS_METHODS
        }
        for ending, (fusion, rival) in OF_FUSION.items():
            title = f"{counts[0]} to {counts[-1]} classes: {ending}"
            both = zip(cells[fusion], cells[rival], strict=True)
            found[title] = of_task(task, mean_per_seed(gain(results, *pair) for pair in both))
        for method in lacon.CLASS_METHODS:
            first, last = (results.of(cells[method][place]) for place in (0, -1))
            title = f"{lacon.METHODS[method]}: {counts[0]} - {counts[-1]} classes"
            found[title] = of_task(task, between(first, last))
    return found


def gain(results: Scores, one: Cell, other: Cell) -> dict[int, float]:
    return between(results.of(one), results.of(other))
