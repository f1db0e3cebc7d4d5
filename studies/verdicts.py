"""The opening table of a paper's page: its claims, and whether a fair test here supports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from reports.comparison import holm, paired_p
from reports.tables import Table

LEVEL = 0.05
FEWEST_SEEDS = 3
FAIR = "fair"
READING = (
    "The figure is the mean difference in points, in the direction of the claim. Seeds are paired. "
    "With three to five pairs the test is a paired t-test, with more Wilcoxon's signed-rank test, "
    "both two-sided at 5 %, adjusted after Holm over the lines of a claim. *Holds* and *does not "
    "hold* mean a difference in the direction of the claim and in the other one. *Not shown* means "
    "no significant difference. *Not tested fairly* means that the figure may say nothing about "
    "the claim, for the reason in the last column."
)


@dataclass(frozen=True)
class Test:
    """One test of a claim: paired differences, and what makes the test unfair.

    `differences` are fractions of one in the direction of the claim, one per pair. `reasons` are
    the conditions of a fair test that do not hold, such as "not tuned: rate".
    """

    what: str
    differences: Sequence[float]
    seeds: int
    reasons: Sequence[str] = ()


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, with its place there and its tests here."""

    text: str
    source: str
    tests: Sequence[Test]


def seed_differences(first: Mapping[int, float], second: Mapping[int, float]) -> list[float]:
    """Return the first figure minus the second one for each seed that both have."""
    return [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]


def verdict(test: Test, p: float | None) -> str:
    """Return holds, does not hold, not shown, or not tested fairly."""
    if test.reasons or test.seeds < FEWEST_SEEDS or p is None:
        return "not tested fairly"
    if p >= LEVEL:
        return "not shown"
    return "holds" if fmean(test.differences) > 0 else "does not hold"


def fairness(test: Test) -> str:
    """Return the reasons for which a test is not fair, or that it is fair."""
    missing = FEWEST_SEEDS - test.seeds
    reasons = [*test.reasons]
    if test.seeds == 0:
        reasons = ["not run yet", *reasons]
    elif missing > 0:
        reasons = [f"{test.seeds} of {FEWEST_SEEDS} seeds", *reasons]
    return "; ".join(reasons) or FAIR


def verdict_table(claims: Sequence[Claim]) -> Table:
    """Return the table claim, verdict, figure, seeds, test of fairness: one line per test."""
    rows = []
    for claim in claims:
        adjusted = holm([paired_p(test.differences) for test in claim.tests])
        for test, p in zip(claim.tests, adjusted, strict=True):
            name = f"{claim.text}: {test.what}" if test.what else claim.text
            figure = f"{100 * fmean(test.differences):+.2f}" if test.differences else ""
            figure += f" (p {p:.3f})" if p is not None else ""
            rows.append(
                [
                    f"{name} ({claim.source})",
                    verdict(test, p),
                    figure,
                    str(test.seeds),
                    fairness(test),
                ]
            )
    return ["claim", "verdict", "figure", "seeds", "test of fairness"], rows
