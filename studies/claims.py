"""Tests of a paper's claims: paired differences and their significance, in a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from reports.comparison import holm, signed_rank
from reports.tables import Table, beside, mean_and_spread
from studies.results import Cell

LEVEL = 0.05
PRINTED = "better here, as the paper says? (not tested fairly)"
NOT_IN_PAPER = "better?"  # header of questions that no paper asks
READING = (
    "Wilcoxon's signed-rank test over (data set, seed) pairs, adjusted after Holm over the lines "
    "of a table; below six pairs nothing can be shown."
)


def shared_seeds(several: Collection[Mapping[int, Any]]) -> set[int]:
    """Return the seeds which all these figures share."""
    return set.intersection(*map(set, several)) if several else set()


def select_seeds(found: Mapping[int, float], seeds: Container[int]) -> dict[int, float]:
    """Return only the figures of `seeds`, such as a sweep's."""
    return {seed: figure for seed, figure in found.items() if seed in seeds}


def shown(values: Iterable[float], scale: float = 100, digits: int = 1) -> str:
    """Format mean ± standard deviation (seeds) in per cent; empty without values."""
    found = [scale * value for value in values]
    return f"{mean_and_spread(found, digits)} ({len(found)})" if found else ""


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
) -> list[float]:
    """Return differences over shared (task, seed) pairs; `of` returns a cell's figures by seed."""
    found = []
    for one, other in zip(first, second, strict=True):
        found += by_seed(of(one), of(other))
    return found


def between(mine: Mapping[int, float], theirs: Mapping[int, float]) -> dict[int, float]:
    """Return the difference for each seed that both have."""
    return {seed: mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())}


def by_seed(mine: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Return the differences of `between` without their seeds."""
    return list(between(mine, theirs).values())


def mean_per_seed(several: Iterable[Mapping[int, float]]) -> list[float]:
    """Return one mean per seed over conditions of one data set, such as ratios.

    The conditions are not independent pairs: their runs share training examples and the test set.
    Empty conditions are ignored; a seed counts only if all other conditions have it.
    """
    there = [figures for figures in several if figures]
    return [fmean(figures[seed] for figures in there) for seed in sorted(shared_seeds(there))]


def claims_table(differences: Mapping[str, Sequence[float]], asked: str = PRINTED) -> Table:
    """Return one row per claim, such as `A - B`: whether A is better than B.

    `differences` holds the difference of each pair, as a fraction of one.
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
