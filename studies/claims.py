"""Whether a paper's claims hold: paired differences, tested, in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np

from reports.statistics import holm, signed_rank
from studies.seeds import SeedCell, shared_seeds

Table = tuple[list[str], list[list[str]]]
LEVEL = 0.05
PRINTED = "better here, as the paper says? (not tested fairly)"
ASKED = "better?"  # of what no paper claims
READING = (
    "Wilcoxon's signed-rank test over (data set, seed) pairs, adjusted after Holm over the lines "
    "of a table; below six pairs nothing can be shown."
)


def differences(
    of: Callable[[SeedCell], Mapping[int, float]],
    first: Sequence[SeedCell],
    second: Sequence[SeedCell],
) -> list[float]:
    """Of the figures by seed that `of` gives, over (task, seed) pairs that both have."""
    found = []
    for one, other in zip(first, second, strict=True):
        found += by_seed(of(one), of(other))
    return found


def between(mine: Mapping[int, float], theirs: Mapping[int, float]) -> dict[int, float]:
    """Differences by seed, for those that both have."""
    return {seed: mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())}


def by_seed(mine: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """The same without the seeds."""
    return list(between(mine, theirs).values())


def means_by_seed(several: Iterable[Mapping[int, float]]) -> list[float]:
    """One mean a seed of differences that repeat seeds on one data set, such as over ratios.

    They are no pairs of their own: their runs share training examples and test set. Of those that
    have any, all must have a seed.
    """
    there = [figures for figures in several if figures]
    return [fmean(figures[seed] for figures in there) for seed in sorted(shared_seeds(there))]


def claims_table(differences: Mapping[str, Sequence[float]], asked: str = PRINTED) -> Table:
    """A line a claim, such as `A - B`, that says whether A is better than B.

    `differences` are those of the pairs, in shares of one.
    """
    adjusted = holm([signed_rank(list(found)) for found in differences.values()])
    rows = [
        [
            claim,
            str(len(found)),
            f"{100 * np.mean(found):+.2f}" if found else "",
            "not testable" if p is None else f"{p:.4f}",
            verdict(found, p),
        ]
        for (claim, found), p in zip(differences.items(), adjusted, strict=True)
    ]
    return ["", "pairs", "mean difference", "p (Holm)", asked], rows


def verdict(differences: Sequence[float], p: float | None) -> str:
    if p is None:
        return ""
    if p >= LEVEL:
        return "no difference shown"
    return "yes" if np.mean(differences) > 0 else "no: worse"
