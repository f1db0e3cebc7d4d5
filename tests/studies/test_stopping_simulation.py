"""Simulated comparisons: wrong verdicts, runs saved, and the stored result."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from common.json_files import read_sealed
from studies.until_sure.simulation import (
    EXAMPLES,
    MOST_SEEDS,
    NOISE,
    TINY,
    Case,
    draw_comparison,
    is_wrong,
    simulate,
    table,
)
from studies.until_sure.stopping import A_BETTER, B_BETTER, ERROR, OPEN, SMALL

STORED = Path(__file__).parents[2] / "results" / "until-sure" / "simulation.json"
COUNT = 150


@pytest.mark.parametrize("noise", ["normal", "t3", "rounded"])
def test_few_verdicts_are_wrong_without_a_difference(noise):
    """At most 5 % of 150, and what chance adds to it with a probability of 1 %."""
    found = simulate(Case(noise, 0.0, margin=TINY), COUNT, np.random.default_rng(1))
    assert found["wrong"] <= ERROR + 0.04
    assert found["t_test_after_each_pair_finds"] > found["wrong"]
    assert found["pairs"]["mean"] > 0.9 * MOST_SEEDS


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_other_examples_cause_no_wrong_verdicts(share):
    found = simulate(Case("normal", 0.0, share, TINY), 60, np.random.default_rng(2))
    assert found["wrong"] <= ERROR


def test_a_large_difference_needs_few_of_the_ten_seeds():
    found = simulate(Case("normal", 5.0), 60, np.random.default_rng(3))
    assert found["verdicts"][A_BETTER] == 1
    assert found["runs_saved"] > 0.5
    assert found["settled_within_fixed"] == 1


def test_a_difference_at_the_margin_is_rarely_called_smaller():
    found = simulate(Case("normal", 1.5), COUNT, np.random.default_rng(4))
    assert found["verdicts"][SMALL] <= ERROR
    assert found["wrong"] == found["verdicts"][SMALL] + found["verdicts"][B_BETTER]


@pytest.mark.parametrize("name", NOISE)
def test_noise_has_no_mean_and_about_one_deviation(name):
    drawn = NOISE[name](np.random.default_rng(5), (200, 500))
    assert abs(drawn.mean()) < 0.02
    assert drawn.std() == pytest.approx(1.16 if name == "rounded" else 1, abs=0.1)


def test_the_drawn_covariance_is_that_of_the_drawn_differences():
    case, rng = Case("normal", 0.0, 0.7), np.random.default_rng(6)
    drawn = [draw_comparison(case, rng) for _ in range(400)]
    differences = np.array([x for x, _ in drawn])
    # Beside the noise of the seeds: what they share, and what each has of its own.
    between = np.cov(differences.T)
    expected = np.full((MOST_SEEDS, MOST_SEEDS), 0.49) + np.eye(MOST_SEEDS) * 1.49
    assert np.abs(between - expected).mean() < 0.1
    mean = np.mean([one for _, one in drawn], axis=0)
    np.testing.assert_allclose(mean, expected - np.eye(MOST_SEEDS), atol=0.02)
    assert EXAMPLES >= 100


def test_what_is_wrong():
    assert is_wrong(A_BETTER, Case("normal", 0.0))
    assert not is_wrong(A_BETTER, Case("normal", 0.1))
    assert is_wrong(B_BETTER, Case("normal", 0.1))
    assert is_wrong(SMALL, Case("normal", 1.5))
    assert not is_wrong(SMALL, Case("normal", 1.4))
    assert not is_wrong(OPEN, Case("normal", 5.0))


def test_the_stored_simulation_keeps_its_promise():
    """1,000 comparisons of each kind; skewed noise is the exception that the page names."""
    content = read_sealed(STORED, UserError, "run its command again")
    cases = content["cases"]
    assert {one["comparisons"] for one in cases} == {1000}
    assert {one["noise"] for one in cases} == set(NOISE)
    for one in cases:
        if one["noise"] != "exponential":
            assert one["wrong"] <= ERROR, one
    none = [one for one in cases if one["margin"] == TINY]
    assert {one["noise"] for one in none} == set(NOISE)
    header, rows = table(cases)
    assert {len(row) for row in rows} == {len(header)}
