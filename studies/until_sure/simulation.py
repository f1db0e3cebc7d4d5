"""Simulated comparisons that say when to stop: python -m studies.until_sure.simulation

Differences of seeds have a deviation of 1 and a known mean, so that wrong verdicts can be counted,
and runs compared with those of ten seeds of each configuration. The result is simulation.json. The
rules are those of `stopping.py`, and none of the rules knows the deviation.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.argument_types import typed
from common.entry_point import start
from common.environment import environment
from common.json_files import write_sealed
from common.progress import with_bar
from common.settings import Count, Seed
from reports.tables import text_table
from studies.until_sure.stopping import (
    A_BETTER,
    B_BETTER,
    ERROR,
    OPEN,
    SMALL,
    Conclusion,
    Population,
    Rule,
    conclude,
)

FIXED_SEEDS = 10  # of the comparison without stopping
MOST_SEEDS = 30
MARGIN = 1.5  # deviations of a difference
TINY = 0.01  # a margin that is never reached
EXAMPLES = 400  # dev examples, where they are drawn
EFFECTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
GRID = 2.0  # of rounded differences
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

# Noise of mean 0 and deviation 1. t with 3 degrees of freedom has heavy tails. Exponential noise is
# skewed: the differences of two configurations whose scores have the same distribution are not.
# Rounded noise is that of a small dev set: most differences are 0, or one example.
NOISE: Mapping[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t3": lambda rng, shape: rng.standard_t(3, size=shape) / 3**0.5,
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
    "rounded": lambda rng, shape: np.round(rng.normal(size=shape) / GRID) * GRID,
}


@dataclass(frozen=True)
class Case:
    """Simulated comparisons of one kind. `share` is the deviation that other examples cause."""

    noise: str
    effect: float
    share: float = 0.0
    margin: float = MARGIN

    @property
    def rule(self) -> Rule:
        examples: Population = "sampled" if self.share else "fixed"
        resolution = GRID if self.noise == "rounded" else 0.0
        return Rule(self.margin, examples, resolution, MOST_SEEDS)


def cases() -> Iterator[Case]:
    """Yield all cases: true differences with two kinds of noise, others at 0 and at the margin."""
    for noise in ("normal", "t3"):
        yield from (Case(noise, effect) for effect in EFFECTS)
    yield from (Case(noise, 0.0) for noise in ("exponential", "rounded"))
    yield from (Case("normal", effect, share) for share in (0.3, 1.0) for effect in (0.0, 3.0))
    # Nothing ends these but a wrong verdict or the last seed: as many looks as there can be.
    yield from (Case(noise, 0.0, margin=TINY) for noise in NOISE)
    yield Case("normal", 0.0, 0.3, TINY)


def draw_comparison(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the differences (n,) of the seeds, and their covariance (n, n) over examples.

    The difference of an example consists of a part that all seeds share, whose mean over endless
    examples is 0, and a part of each seed of the same size. The score of a seed is the mean over
    the drawn examples, the true effect and the noise of the seed.
    """
    noise = case.effect + NOISE[case.noise](rng, (1, MOST_SEEDS))[0]
    if not case.share:
        return noise, np.zeros((MOST_SEEDS, MOST_SEEDS))
    scale = case.share * EXAMPLES**0.5
    parts = scale * rng.normal(size=EXAMPLES) + scale * rng.normal(size=(MOST_SEEDS, EXAMPLES))
    return noise + parts.mean(1), np.cov(parts) / EXAMPLES


def is_wrong(verdict: str, case: Case) -> bool:
    """Return whether a verdict contradicts the true effect; none is never wrong."""
    true = {A_BETTER: case.effect > 0, B_BETTER: case.effect < 0}
    return not (true | {SMALL: abs(case.effect) < case.margin, OPEN: True})[verdict]


def t_tests(differences: np.ndarray) -> np.ndarray:
    """Return whether a t-test of the first 3, 4, ... differences finds one: (n - 2,)."""
    from scipy.stats import t

    n = np.arange(1, len(differences) + 1)
    means, squares = differences.cumsum() / n, (differences**2).cumsum()
    deviations = np.sqrt(np.maximum(squares - n * means**2, 0) / np.maximum(n - 1, 1))
    widths = t.ppf(1 - ERROR / 2, np.maximum(n - 1, 1)) / np.sqrt(n)
    return (np.abs(means) > widths * deviations)[2:]


def simulate(case: Case, count: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return shares of verdicts and numbers of pairs of `count` simulated comparisons."""
    found: list[tuple[Conclusion, int]] = []
    at_fixed, peeked = 0, 0
    for _ in range(count):
        differences, covariance = draw_comparison(case, rng)
        one = conclude(differences.tolist(), covariance, [1.0] * MOST_SEEDS, case.rule)
        found.append((one, one.looks[-1].pairs))
        tests = t_tests(differences)
        at_fixed += bool(tests[FIXED_SEEDS - 3])
        peeked += bool(tests.any())
    verdicts = Counter(one.verdict for one, _ in found)
    pairs = np.array([n for _, n in found])
    early = [is_early(one, n) for one, n in found]
    shares = {name: verdicts[name] / count for name in (A_BETTER, B_BETTER, SMALL, OPEN)}
    return {
        "noise": case.noise,
        "effect": case.effect,
        "deviation_of_examples": case.share,
        "margin": case.margin,
        "comparisons": count,
        "wrong": sum(is_wrong(one.verdict, case) for one, _ in found) / count,
        "verdicts": shares,
        "pairs": {"mean": float(pairs.mean()), "median": float(np.median(pairs))},
        "settled_within_fixed": sum(early) / count,
        # Of the runs of ten seeds; negative if more are needed. `at_most_fixed` gives up at ten.
        "runs_saved": 1 - float(pairs.mean()) / FIXED_SEEDS,
        "runs_saved_at_most_fixed": 1 - float(np.minimum(pairs, FIXED_SEEDS).mean()) / FIXED_SEEDS,
        "fixed_t_test_finds": at_fixed / count,
        **({"t_test_after_each_pair_finds": peeked / count} if case.effect == 0 else {}),
    }


def is_early(one: Conclusion, pairs: int) -> bool:
    """Return whether a comparison has a verdict with at most the fixed number of seeds."""
    return one.verdict != OPEN and pairs <= FIXED_SEEDS


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m studies.until_sure.simulation", description=__doc__
    )
    parser.add_argument(
        "--comparisons", type=typed(Count), default=1000, help="number of each kind"
    )
    parser.add_argument("--seed", type=typed(Seed), default=0, help="random seed")
    parser.add_argument("--output", type=Path, default=Path("results/until-sure"))
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    rows = [
        simulate(case, args.comparisons, np.random.default_rng([args.seed, number]))
        for number, case in enumerate(with_bar("simulate", "case", list(cases())))
    ]
    content = {
        "command": f"python -m studies.until_sure.simulation --comparisons {args.comparisons} "
        f"--seed {args.seed}",
        "most_seeds": MOST_SEEDS,
        "fixed_seeds": FIXED_SEEDS,
        "environment": environment(),
        "cases": rows,
    }
    write_sealed(args.output / "simulation.json", content)
    print(text_table(*table(rows)))


def table(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the table of simulated comparisons."""
    header = [
        "noise",
        "examples",
        "margin",
        "effect",
        "wrong",
        "better",
        "below",
        "open",
        "pairs",
        "saved",
    ]
    header += [
        f"saved of {FIXED_SEEDS}",
        f"settled by {FIXED_SEEDS}",
        f"t-test of {FIXED_SEEDS}",
        "t-test each",
    ]
    shown = []
    for one in rows:
        v, peeked = one["verdicts"], one.get("t_test_after_each_pair_finds")
        shares = [one["wrong"], v[A_BETTER] + v[B_BETTER], v[SMALL], v[OPEN]]
        row = [one["noise"], f"{one['deviation_of_examples']:g}"]
        row += [f"{one['margin']:g}", f"{one['effect']:g}"]
        row += [f"{share:.1%}" for share in shares]
        row += [f"{one['pairs']['mean']:.1f}", f"{one['runs_saved']:.0%}"]
        row += [f"{one['runs_saved_at_most_fixed']:.0%}", f"{one['settled_within_fixed']:.0%}"]
        row += [f"{one['fixed_t_test_finds']:.0%}", "" if peeked is None else f"{peeked:.0%}"]
        shown.append(row)
    return header, shown


if __name__ == "__main__":
    start("python -m studies.until_sure.simulation", main)
