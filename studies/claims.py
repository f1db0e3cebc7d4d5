"""Claims of a paper: paired differences, their significance, and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from types import MappingProxyType
from typing import Any

from reports.significance import holm, p_text, paired_p
from reports.tables import Table, beside, markdown_table, mean_and_spread
from studies.results import Cell

LEVEL = 0.05
FEWEST_SEEDS = 3
READING = """Fair tests are first in the table, and tests that are not run yet are last.

- *Figure*: the mean difference in points, above 0 in the direction of the claim. The runs of a pair
  have the same seed.
- *Holds*: a significant difference in the direction of the claim. *Does not hold*: one in the other
  direction. *Not shown*: no significant difference.
- *Not tested fairly*: the figure may say nothing about the claim, for the reason in the last
  column.
- The test is two-sided at 5 %: a paired t-test with three to nine pairs, Wilcoxon's signed-rank
  test with more. *p* is adjusted (Holm) over all fair tests of a claim on this page, also those on
  data sets that are not in the paper's table. It is not adjusted over several claims. It is a test
  over seeds: all runs are scored on the same examples."""
NOT_LEARNT = "no method has learnt it, by its score or by Matthews' correlation"
Pairs = Mapping[Any, float]  # difference by seed, or by task and seed
PairReasons = Callable[[Pairs], Sequence[str]]  # why a test of these pairs is not fair
TaskReasons = Callable[[str, Pairs], Sequence[str]]  # the same, of the pairs of a task


@dataclass(frozen=True)
class Test:
    """One test of a claim: paired differences, and what makes the test unfair.

    `differences` are fractions of one in the direction of the claim. `reasons` are the conditions
    of a fair test that do not hold, such as "the rate was not tuned".
    """

    what: str
    differences: Pairs
    reasons: Sequence[str] = ()

    @property
    def seeds(self) -> int:
        """Number of seeds, of the data set with the fewest."""
        keys = [key if isinstance(key, tuple) else ("", key) for key in self.differences]
        return min(Counter(name for name, _ in keys).values(), default=0)

    @property
    def fair(self) -> bool:
        return not self.reasons and self.seeds >= FEWEST_SEEDS


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, with its place there and its tests here."""

    text: str
    source: str
    tests: Sequence[Test]


def shared_seeds(several: Collection[Mapping[int, Any]]) -> set[int]:
    """Return the seeds which all these figures share."""
    return set.intersection(*map(set, several)) if several else set()


def select_seeds(found: Mapping[int, float], seeds: Container[int]) -> dict[int, float]:
    """Return only the figures of `seeds`, such as a sweep's."""
    return {seed: figure for seed, figure in found.items() if seed in seeds}


def shown(values: Iterable[float], scale: float = 100) -> str:
    """Format mean ± standard deviation (seeds) in per cent; empty without values."""
    found = [scale * value for value in values]
    return f"{mean_and_spread(found, 1)} ({len(found)})" if found else ""


def points_text(points: Mapping[Any, Mapping[int, float]]) -> str:
    """Format figures by seed of several points, `0.1: 61.0 ± 3.1 (10), ...`, without empty ones."""
    return ", ".join(f"{x:g}: {shown(found.values())}" for x, found in points.items() if found)


def beside_paper(
    paper: float | Sequence[float] | None, ours: Mapping[int, float], digits: int = 1
) -> str:
    """Format a printed mean (± deviation, if any) and ours: `72.06 ± 5.4 / 61.0 ± 3.1 (10)`."""
    first = ""
    if isinstance(paper, float | int):
        first = f"{paper:.{digits}f}"
    elif paper is not None:
        first = f"{paper[0]:.{digits}f} ± {paper[1]:.1f}"
    return beside(first, shown(ours.values()))


def differences(
    of: Callable[[Cell], Mapping[int, float]],
    first: Sequence[Cell],
    second: Sequence[Cell],
) -> dict[tuple[str, int], float]:
    """Return differences over shared (task, seed) pairs; `of` returns figures by seed.

    `first` and `second` have one cell for each task, in the same order.
    """
    return {
        (next(iter(one.config.tasks)), seed): difference
        for one, other in zip(first, second, strict=True)
        for seed, difference in between(of(one), of(other)).items()
    }


def between(mine: Mapping[int, float], theirs: Mapping[int, float]) -> dict[int, float]:
    """Return the difference for each seed that both have."""
    return {seed: mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())}


def mean_per_seed(several: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Return one mean per seed over conditions of one data set, such as ratios.

    The conditions are not independent pairs: their runs share training examples and the test set.
    Empty conditions are ignored; a seed counts only if all other conditions have it.
    """
    there = [figures for figures in several if figures]
    return {seed: fmean(figures[seed] for figures in there) for seed in sorted(shared_seeds(there))}


def claim_of(
    text: str,
    source: str,
    lines: Mapping[str, Pairs],
    reasons: Sequence[str] = (),
    learnt: Collection[str] | None = None,
    further: Mapping[str, PairReasons] = MappingProxyType({}),
    printed: Collection[str] | None = None,
) -> Claim:
    """Return a claim with the tests of each line, such as `A - B`.

    All have the same reasons, and a line those of `further` for its pairs. With `learnt`, the tasks
    that a method has learnt, the pairs are by (task, seed), and tests are those of `split_by_task`.
    If some tasks that are `printed` in the paper's table have no pairs, a test without pairs names
    them, unless no task has any.
    """
    tests = list[Test]()
    for line, pairs in lines.items():
        own = further.get(line, no_reasons)
        if learnt is None:
            tests.append(Test(line, pairs, [*reasons, *own(pairs)]))
        else:
            of_task = partial(reasons_of_task, learnt, reasons, own)
            tests += split_by_task(line, pairs, of_task, printed)
    every = lines.values() if learnt is not None else ()
    measured = {task for pairs in every for task, _ in pairs}
    missing = [task for task in printed or () if task not in measured]
    if measured and missing:
        tests.append(Test(f"on {', '.join(missing)}", {}))
    return Claim(text, source, unlearnt_last(tests))


def no_reasons(_: Pairs) -> Sequence[str]:
    """Return no reasons, whatever the pairs."""
    return ()


def reasons_of_task(
    learnt: Container[str], common: Sequence[str], own: PairReasons, task: str, pairs: Pairs
) -> list[str]:
    """Return the reasons of a task: it is not learnt, those of all tests, those of its pairs."""
    return [*[NOT_LEARNT] * (task not in learnt), *common, *own(pairs)]


def split_by_task(
    what: str, pairs: Pairs, reasons: TaskReasons, printed: Container[str] | None
) -> list[Test]:
    """Return the tests of a comparison, from its pairs by (task, seed).

    A task with no reason against a fair test is tested alone: a mean over tasks would depend on
    which of them were run. Other tasks stand together if they have the same reasons. Names of tests
    say which tasks are not `printed` in the paper's table, unless it is None.
    """
    groups = dict[tuple[tuple[str, ...], str], dict[tuple[str, int], float]]()
    for task in dict.fromkeys(task for task, _ in pairs):
        own = {key: gain for key, gain in pairs.items() if key[0] == task}
        why = tuple(reasons(task, own))
        groups.setdefault((why, "" if why else task), {}).update(own)
    found = list[Test]()
    for (why, _), several in groups.items():
        names = tasks_text(dict.fromkeys(task for task, _ in several), printed)
        found.append(Test(f"{what} on {names}", several, why))
    return found or [Test(what, {})]


def tasks_text(tasks: Iterable[str], printed: Container[str] | None) -> str:
    """Return names of tasks; of those that are not `printed`, say so, unless it is None."""
    every = [*tasks]
    ours = [task for task in every if printed is not None and task not in printed]
    which = "" if ours == every else f"{', '.join(ours)} "
    return ", ".join(every) + (f" ({which}not in the paper's table)" if ours else "")


def unlearnt_last(tests: Iterable[Test]) -> list[Test]:
    """Return the tests in their order, those of tasks that are not learnt at the end."""
    return sorted(tests, key=lambda test: NOT_LEARNT in test.reasons)


def verdict(test: Test, p: float | None) -> str:
    """Return holds, does not hold, not shown, or not tested fairly."""
    if not test.fair or p is None:
        return "not tested fairly"
    if p >= LEVEL:
        return "not shown"
    return "holds" if fmean(test.differences.values()) > 0 else "does not hold"


def fairness(test: Test) -> str:
    """Return the reasons for which a test is not fair, or that it is fair."""
    if test.seeds == 0:
        return "not run yet"
    reasons = [*test.reasons]
    if test.seeds < FEWEST_SEEDS:
        reasons = [f"{test.seeds} of {FEWEST_SEEDS} seeds", *reasons]
    return "; ".join(reasons) or "fair"


def with_one_not_run(tests: Sequence[Test]) -> list[Test]:
    """Return the tests with pairs and, last, one that names all tests without."""
    run = [test for test in tests if test.differences]
    rest = [test.what for test in tests if not test.differences]
    return [*run, Test("; ".join(rest), {})] if rest else run


def verdict_table(claims: Sequence[Claim]) -> Table:
    """Return the table claim, verdict, figure, seeds, test of fairness: one line per test.

    Only fair tests have a p, and count in the adjustment. Fair tests come first, tests that are not
    run yet last; those of one claim share a line.
    """
    rows = list[tuple[tuple[bool, bool], list[str]]]()
    for claim in claims:
        tests = with_one_not_run(claim.tests)
        adjusted = holm(
            [paired_p([*test.differences.values()]) if test.fair else None for test in tests]
        )
        for test, p in zip(tests, adjusted, strict=True):
            name = f"{claim.text}: {test.what}" if test.what else claim.text
            figure, pairs = "", len(test.differences)
            if pairs:
                figure = f"{100 * fmean(test.differences.values()):+.2f}"
                figure += f" (p {p_text(p, digits=3)})" if p is not None else ""
            seeds = f"{test.seeds} ({pairs} pairs)" if pairs > test.seeds else str(test.seeds)
            row = [f"{name} ({claim.source})", verdict(test, p), figure, seeds, fairness(test)]
            rows.append(((not test.fair, not pairs), row))
    rows.sort(key=lambda one: one[0])
    header = ["claim", "verdict", "figure", "seeds", "test of fairness"]
    return header, [row for _, row in rows]


def claims_part(claims: Sequence[Claim], note: str) -> list[str]:
    """Return the part of a page with the claims: the table, how to read it, and a study's note."""
    if not claims:
        return []
    return ["## The claims", markdown_table(*verdict_table(claims)), READING, note]
