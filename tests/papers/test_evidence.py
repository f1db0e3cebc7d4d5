"""Claims: their differences, intervals and verdicts; the front of two objectives."""

import pytest
from scipy import stats

from papers.evidence import Claim, Evidence, expanded
from papers.page import sentence
from papers.scl_moo import front
from papers.store import Figure, Store, write_figures
from tasks.metrics import overall_score


@pytest.fixture
def evidence(tmp_path):
    """Rows A and B of sst with three seeds, C with four; X, Y and Z of one task each."""
    scores = {
        ("A", "sst", "accuracy"): [0.50, 0.52, 0.51],
        ("B", "sst", "accuracy"): [0.48, 0.49, 0.48],
        ("C", "sst", "accuracy"): [0.50, 0.47, 0.51, 0.9],
        ("X", "sst", "accuracy"): [0.5, 0.6],
        ("Y", "qqp", "accuracy"): [0.8, 0.7],
        ("Z", "sts", "pearson"): [0.9, 0.8],
        ("Z", "sts", "mean label"): [2.5, 2.7],
    }
    figures = [
        Figure(row, task, seed, "dev", metric, value, "c", "m", "d")
        for (row, task, metric), values in scores.items()
        for seed, value in enumerate(values, start=1)
    ]
    write_figures(tmp_path / "p.csv", figures)
    metrics = {"sst": "accuracy", "qqp": "accuracy", "sts": "pearson", "all": "overall"}
    return Evidence(Store(tmp_path, "p"), "dev", metrics)


def claim(evidence, plus, minus, **more):
    return Claim("one", "A is above B", plus, minus, evidence, **more)


def test_an_interval_is_that_of_scipy_over_the_seeds_that_both_have(evidence):
    one = claim(evidence, ["A sst"], ["C sst"])
    assert one.differences == pytest.approx([0, 5, 0])
    expected = stats.ttest_1samp(one.differences, 0).confidence_interval(0.95)
    assert one.interval == pytest.approx(tuple(expected))


@pytest.mark.parametrize(
    ("plus", "minus", "verdict"),
    [
        ("A sst", "B sst", "holds"),
        ("B", "A", "does not hold"),
        ("A sst", "C sst", "not shown"),
        ("X sst", "A sst", ""),  # two seeds
        ("absent sst", "A sst", ""),
    ],
)
def test_a_verdict_follows_from_the_interval(evidence, plus, minus, verdict):
    assert claim(evidence, [plus], [minus]).verdict == verdict
    reason = claim(evidence, [plus], [minus], no_verdict="not learnt")
    assert reason.verdict == "not learnt"


def test_terms_are_rows_of_a_task_means_of_several_and_rows_together(evidence):
    assert claim(evidence, ["{A,B}"], ["B"]).differences == pytest.approx([1, 1.5, 1.5])
    both = evidence.term("X+Y+Z all")
    assert both == pytest.approx({1: overall_score(0.5, 0.8, 0.9), 2: overall_score(0.6, 0.7, 0.8)})
    assert evidence.term("X+Y+Z sst") == {}
    assert evidence.term("Z sts mean label") == {1: 2.5, 2: 2.7}
    assert expanded("{a,b}-{1,2}") == ["a-1", "a-2", "b-1", "b-2"]


def test_a_sentence_has_computed_numbers_or_is_left_out(evidence):
    claims = {"one": claim(evidence, ["A sst"], ["B sst"])}
    text = "A has {A sst}, {one} points more ({one interval}, {one verdict})."
    found = sentence(text, claims, evidence)
    assert found == "A has 51.0, +2.67 points more (+1.23 to +4.10, holds)."
    assert sentence("C has {absent sst}.", claims, evidence) == ""
    two = {"two": claim(evidence, ["X sst"], ["A sst"])}
    assert sentence("{two verdict}", two, evidence) == ""


def test_a_front_has_the_points_that_no_other_dominates():
    points = {"0.1": (0.0, 3.0), "0.3": (1.0, 1.0), "0.5": (2.0, 1.0), "0.7": (3.0, 0.5)}
    assert front(points) == ["0.1", "0.3", "0.7"]
    assert front({**points, "best": (-1.0, 0.0)}) == ["best"]
