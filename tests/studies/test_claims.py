"""Verdicts on claims: significance, fairness, and the opening table."""

import pytest

from multitask.settings.config import RunConfig
from reports.significance import paired_p
from studies.claims import (
    NOT_LEARNT,
    Claim,
    Test,
    between,
    claim_of,
    mean_per_seed,
    split_by_task,
    verdict_table,
)
from studies.fairness import exceeds, learnt_tasks, limit_reason, pooling_reason

UP = (0.020, 0.021, 0.019)


def with_seeds(what, differences, *reasons):
    return Test(what, dict(enumerate(differences)), reasons)


def lines(*tests):
    header, rows = verdict_table([Claim("A is above B", "Table 1", tests)])
    assert header == ["claim", "verdict", "figure", "seeds", "test of fairness"]
    return rows


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        (UP, "holds"),
        ([-one for one in UP], "does not hold"),
        ((0.02, -0.01, 0.005), "not shown"),
        ((0.0, 0.0, 0.0), "not shown"),
        ((0.01, 0.01, 0.01), "not shown"),
    ],
)
def test_three_seeds_decide_by_a_paired_t_test(differences, expected):
    ((_, verdict, _, seeds, fairness),) = lines(with_seeds("M1", differences))
    assert (verdict, seeds, fairness) == (expected, "3", "fair")


def test_an_unfair_test_says_nothing_about_the_claim():
    ((claim, verdict, figure, _, fairness),) = lines(with_seeds("", UP, "the rate was not tuned"))
    assert claim == "A is above B (Table 1)"
    assert verdict == "not tested fairly"
    assert figure.startswith("+2.00")
    assert fairness == "the rate was not tuned"


@pytest.mark.parametrize(
    ("differences", "reason"), [((), "not run yet"), ((0.02, 0.03), "2 of 3 seeds")]
)
def test_too_few_seeds_are_no_fair_test(differences, reason):
    ((_, verdict, _, _, fairness),) = lines(with_seeds("", differences))
    assert (verdict, fairness) == ("not tested fairly", reason)


def test_lines_of_one_claim_are_adjusted_together():
    alone = paired_p([0.02, 0.03, 0.015])
    assert alone is not None
    rows = lines(*(with_seeds(name, [0.02, 0.03, 0.015]) for name in "ab"))
    assert [row[2] for row in rows] == [f"+2.17 (p {2 * alone:.3f})"] * 2


def test_paired_p_is_that_of_scipy():
    from scipy.stats import ttest_rel, wilcoxon

    first, second = [0.5, 0.52, 0.55], [0.49, 0.5, 0.51]
    differences = between(dict(enumerate(first)), dict(enumerate(second)))
    assert paired_p(list(differences.values())) == pytest.approx(ttest_rel(first, second).pvalue)
    ten = [0.01, 0.02, -0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1]
    assert paired_p(ten) == pytest.approx(wilcoxon(ten, zero_method="pratt").pvalue)
    assert paired_p(ten[:2]) is None
    assert paired_p([0.01] * 3) == 0.25, "signs of three can be equal by chance"
    assert paired_p([0.0] * 3) == 1


def test_differences_are_those_of_shared_seeds():
    assert between({1: 0.5, 2: 0.75}, {2: 0.25, 3: 0.5}) == {2: 0.5}


def test_unfair_tests_do_not_count_in_the_adjustment():
    fair, other = with_seeds("fair", UP), with_seeds("unfair", (0.02, 0.03, 0.015), "one seed")
    assert lines(fair)[0] == lines(fair, other)[0]
    assert "p" not in lines(fair, other)[1][2]


def test_settings_that_decide_a_test_are_reasons():
    plain = RunConfig(mode="single", tasks=("sst",), pooling="cls", limit=200)
    assert pooling_reason(plain) == ["[CLS] of an encoder that averages its tokens"]
    assert pooling_reason(plain.changed(pooling="mean")) == []
    assert limit_reason(plain, "class") == ["200 examples per class"]
    assert limit_reason(plain.changed(limit=0.25), "set") == ["0.25 of the training examples"]
    assert limit_reason(plain.changed(limit=None), "set") == []


@pytest.mark.parametrize(
    ("figures", "above"),
    [
        ([0.51], True),
        ([0.49], False),
        ([0.50, 0.52, 0.54], False),  # mean 0.52, standard error 0.0115
        ([0.52, 0.53, 0.54], True),
        ([], False),
    ],
)
def test_a_mean_is_above_a_share_by_two_standard_errors(figures, above):
    assert exceeds(figures, 0.5) is above


def test_a_task_without_a_reason_against_a_fair_test_is_tested_alone():
    pairs = {(task, seed): 0.1 for task in ("sst2", "qnli", "rte", "cola") for seed in (1, 2, 3)}

    def reasons(task, own):
        assert {name for name, _ in own} == {task}
        return ["a limit"] if task in ("rte", "cola") else []

    found = split_by_task("A - B", pairs, reasons, ["sst2", "rte"])
    assert [(one.what, len(one.differences), one.fair) for one in found] == [
        ("A - B on sst2", 3, True),
        ("A - B on qnli (not in the paper's table)", 3, True),
        ("A - B on rte, cola (cola not in the paper's table)", 6, False),
    ]
    (whole,) = split_by_task("A - B", pairs, lambda *_: ["a limit"], None)
    assert whole.what == "A - B on sst2, qnli, rte, cola"
    assert split_by_task("A - B", {}, reasons, None) == [Test("A - B", {})]


def test_tests_are_split_by_the_tasks_that_a_method_has_learnt():
    learnt = learnt_tasks([("rte", {1: 0.50}), ("sst2", {1: 0.50}), ("sst2", {1: 0.80})])
    assert learnt == {"sst2"}
    pairs = {("sst2", 1): 0.1, ("rte", 1): 0.2, ("sst2", 2): 0.3}
    lines = {"A - B": pairs, "A - C": {("rte", 1): 0.1}, "A - D": {}}

    def behind(few):  # a reason that depends on the pairs of the test, not on those of the line
        return ["behind"] if sum(few.values()) < 0.3 else []

    of_lines = {"A - B": behind}
    claim = claim_of("A is best", "Table 1", lines, ["a limit"], learnt, of_lines, ["sst2"])
    found = [(one.what, len(one.differences), [*one.reasons]) for one in claim.tests]
    assert found == [
        ("A - B on sst2", 2, ["a limit"]),
        ("A - D", 0, []),
        ("A - B on rte (not in the paper's table)", 1, [NOT_LEARNT, "a limit", "behind"]),
        ("A - C on rte (not in the paper's table)", 1, [NOT_LEARNT, "a limit"]),
    ]


def test_one_mean_a_seed_where_all_have_it():
    several = [{1: 0.1, 2: 0.4, 3: 9.0}, {}, {1: 0.3, 2: 0.0}]
    assert mean_per_seed(several) == pytest.approx({1: 0.2, 2: 0.2})
    assert mean_per_seed([{}, {}]) == {}
