"""What stored figures say: scores by seed, and claims with intervals and verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from papers.store import OVERALL, Store
from tasks.metrics import LEADERBOARD, overall_score

TOGETHER = "+"  # between rows of one task each, whose overall score is meant
Scores = Mapping[int, float]  # by seed


@dataclass(frozen=True)
class Evidence:
    """The figures of a paper; `metrics` are the main metrics of tasks on its `split`."""

    store: Store
    split: str
    metrics: Mapping[str, str]

    def on(self, split: str | None) -> Evidence:
        """Return the figures on another split, if one is given."""
        return replace(self, split=split or self.split)

    def scores(self, row: str, task: str, metric: str = "") -> Scores:
        """Return a figure of a row by seed: of a task, or overall, also of several rows."""
        if TOGETHER in row:
            return self.overall(row.split(TOGETHER)) if task == OVERALL[0] else {}
        name = metric or self.metrics.get(task, self.metrics.get("default", ""))
        for split in (self.split, "train"):
            if found := self.store.values(row, task, split, name):
                return found
        return {}

    def term(self, text: str) -> Scores:
        """Return the figure that a text names: `sst2-50-ce`, `M7 sst` or `M17 sts mean label`.

        Without a task, the row has only one.
        """
        row, *rest = text.split(" ", 2)
        own = (one.task for one in self.store.figures if one.row == row and one.split == self.split)
        return self.scores(row, *(rest or [next(own, "")]))

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


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: the mean of the terms `plus` is above that of the terms `minus`.

    Terms are as in `Evidence.term` and `expanded`.
    `no_verdict` is the reason why the figures cannot decide about it. `scale` makes points of
    scores.
    """

    id: str
    text: str
    plus: Sequence[str]
    minus: Sequence[str]
    evidence: Evidence
    no_verdict: str = ""
    scale: float = 100.0

    @cached_property
    def differences(self) -> list[float]:
        """The difference of each seed that all terms have."""
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
        from scipy.special import stdtrit

        count = len(self.differences)
        if count < 3:
            return None
        middle, spread = fmean(self.differences), stdev(self.differences)
        half = float(stdtrit(count - 1, 0.975)) * spread / sqrt(count)
        return middle - half, middle + half

    @property
    def verdict(self) -> str:
        """`holds`, `does not hold`, `not shown`, the reason against one, or nothing yet."""
        if self.interval is None or self.no_verdict:
            return self.no_verdict
        low, high = self.interval
        return "holds" if low > 0 else "does not hold" if high < 0 else "not shown"

    def shown(self, what: str = "") -> str | None:
        """Return the claim's mean, `interval` or `verdict` as text; None before there are runs."""
        if not self.differences:
            return None
        if what == "interval":
            return None if self.interval is None else "{:+.2f} to {:+.2f}".format(*self.interval)
        return (self.verdict or None) if what == "verdict" else f"{fmean(self.differences):+.2f}"


def claims_of(content: Mapping[str, Any], evidence: Evidence) -> dict[str, Claim]:
    """Return the claims in a paper's TOML file by id."""
    found = {}
    for one in content.get("claims", ()):
        own = {key: value for key, value in one.items() if key != "split"}
        found[one["id"]] = Claim(**own, evidence=evidence.on(one.get("split")))
    return found
