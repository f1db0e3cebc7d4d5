"""What stored figures say: scores by seed, and differences with intervals and verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import sqrt
from statistics import fmean, stdev

from papers.store import OVERALL, Store
from tasks.metrics import LEADERBOARD, overall_score

OTHER = {"dev": "test", "test": "dev"}
TOGETHER = "+"  # between rows of one task each, whose overall score is meant
Scores = Mapping[int, float]  # by seed


@dataclass(frozen=True)
class Evidence:
    """The figures of a paper; `metrics` are the main metrics of tasks on its `split`.

    `singles` are the rows of one task each, by task, for the column `gain`; `ranked` are the rows
    that the column `rank` compares.
    """

    store: Store
    split: str
    metrics: Mapping[str, str]
    singles: Mapping[str, str] = field(default_factory=dict)
    ranked: Sequence[str] = ()

    def on(self, split: str | None) -> Evidence:
        """Return the figures on another split, if one is given."""
        return replace(self, split=split or self.split)

    def scores(self, row: str, task: str, metric: str = "") -> Scores:
        """Return a figure of a row by seed: of a task, or overall, also of several rows."""
        if TOGETHER in row:
            return self.overall(row.split(TOGETHER)) if task == OVERALL[0] else {}
        if task in ("gain", "rank", "mean"):
            return {"gain": self.gains, "rank": self.ranks, "mean": self.means}[task](row)
        name = metric or self.metrics.get(task, self.metrics.get("default", ""))
        for split in (self.split, "train"):
            if found := self.store.values(row, task, split, name):
                return found
        return {}

    def means(self, row: str) -> Scores:
        """Return the mean of the main metrics of a row's tasks."""
        own = [one for one in self.store.figures if one.row == row and one.split == self.split]
        tasks = {one.task for one in own} - {OVERALL[0]}
        several = [self.scores(row, task) for task in tasks]
        return {seed: fmean(one[seed] for one in several) for seed in shared(several)}

    def gains(self, row: str) -> Scores:
        """Return the mean relative gain over the models of one task (Maninis et al., 2019)."""
        pairs = [
            (self.scores(row, task), self.scores(one, task)) for task, one in self.singles.items()
        ]
        seeds = shared([one for pair in pairs for one in pair])
        return {seed: fmean(ours[seed] / one[seed] - 1 for ours, one in pairs) for seed in seeds}

    def ranks(self, row: str) -> Scores:
        """Return the rank of a row among those `ranked`, 1 for the best, as a mean over tasks."""
        found: dict[int, list[float]] = {}
        for task in self.singles:
            several = {name: self.scores(name, task) for name in {row, *self.ranked}}
            for seed in shared([*several.values()]):
                own, every = several[row][seed], [one[seed] for one in several.values()]
                better, equal = (sum(map(test, every)) for test in (own.__lt__, own.__eq__))
                found.setdefault(seed, []).append(better + (1 + equal) / 2)
        return {seed: fmean(ranks) for seed, ranks in found.items()}

    def term(self, text: str) -> Scores:
        """Return the figure that a text names: `sst2-50-ce`, `M7 sst` or `M14 sst accuracy`.

        Without a task, the row must have only one; else this is a ValueError.
        """
        row, *rest = text.split(" ", 2)
        own = {one.task for one in self.store.figures if one.row == row and one.split == self.split}
        own -= {OVERALL[0]}
        if not rest and len(own) > 1:
            raise ValueError(f"{text}: add one of the tasks {', '.join(sorted(own))}")
        return self.scores(row, *(rest or own or [""]))

    def overall(self, rows: Sequence[str]) -> Scores:
        """Return the overall score of rows of one task each, for the seeds of all of them."""
        several = [self.scores(row, task) for row, task in zip(rows, LEADERBOARD, strict=True)]
        return {seed: overall_score(*(one[seed] for one in several)) for seed in shared(several)}


def shared(several: Sequence[Scores]) -> list[int]:
    """Return the seeds that all of these have."""
    return sorted(set.intersection(*(set(one) for one in several))) if several else []


def expanded(text: str) -> list[str]:
    """Return the texts that `{a,b}` in a term stands for, as in a shell."""
    parts = re.split(r"\{([^}]+)\}", text)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(one) for one in product(*choices)]


def half_width(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of a mean (Student's t); `values` are two or more."""
    from scipy.special import stdtrit

    return float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / sqrt(len(values))


@dataclass(frozen=True)
class Difference:
    """By how much the mean of the terms `plus` is above that of the terms `minus`, as claims say.

    Terms are as in `Evidence.term` and `expanded`. `scale` makes points of scores; it is 200 for
    the difference of two differences, A - B - (C - D), whose means are over two terms.
    """

    plus: Sequence[str]
    minus: Sequence[str]
    evidence: Evidence
    scale: float = 100.0

    @cached_property
    def values(self) -> list[float]:
        """The difference for each seed that all terms have."""
        plus, minus = (
            [self.evidence.term(one) for text in terms for one in expanded(text)]
            for terms in (self.plus, self.minus)
        )
        return [
            self.scale * (fmean(one[seed] for one in plus) - fmean(one[seed] for one in minus))
            for seed in shared([*plus, *minus])
        ]

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the mean over seeds (Student's t); None for fewer than three."""
        if len(self.values) < 3:
            return None
        middle, half = fmean(self.values), half_width(self.values)
        return middle - half, middle + half

    @property
    def p(self) -> float:
        """The p value of Student's t test that the mean is 0; 1 for fewer than three seeds."""
        from scipy.special import stdtr

        if self.interval is None:
            return 1.0
        middle, count = fmean(self.values), len(self.values)
        error = stdev(self.values) / sqrt(count)
        return float(2 * stdtr(count - 1, -abs(middle / error))) if error else float(not middle)

    @property
    def contradicted(self) -> bool:
        """Whether the mean on the other split, dev or test, has the other sign."""
        other = replace(self, evidence=self.evidence.on(OTHER[self.evidence.split])).values
        return bool(other) and fmean(other) * fmean(self.values) < 0

    @cached_property
    def verdict(self) -> str:
        """`holds`, `does not hold` or `not shown`; empty for fewer than three seeds.

        It is not shown either if the other split contradicts it.
        """
        if self.interval is None:
            return ""
        low, high = self.interval
        if low <= 0 <= high or self.contradicted:
            return "not shown"
        return "holds" if low > 0 else "does not hold"

    def shown(self, what: str = "mean") -> str | None:
        """Return the `mean`, `interval` or `verdict` as text; None before there are runs."""
        if what == "verdict":
            return self.verdict or None
        if what == "interval":
            return None if self.interval is None else "{:+.2f} to {:+.2f}".format(*self.interval)
        if what != "mean":
            raise ValueError(f"a claim has a mean, an interval and a verdict, not {what}")
        return f"{fmean(self.values):+.2f}" if self.values else None


def stars(several: Sequence[Difference], level: float = 0.05) -> list[bool]:
    """Return which means differ from 0, with the level for all of them together (Holm, 1979).

    As in verdicts, those that the other split contradicts do not.
    """
    order = sorted(range(len(several)), key=lambda i: several[i].p)
    bounds = [level / (len(several) - place) for place in range(len(several))]
    above = [several[i].p > bound for i, bound in zip(order, bounds, strict=True)]
    passed = order[: above.index(True)] if True in above else order
    return [i in passed and not one.contradicted for i, one in enumerate(several)]
