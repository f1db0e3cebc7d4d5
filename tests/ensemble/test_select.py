"""Greedy selection and the halves of dev it selects and reports on."""

import numpy as np
import pytest

from ensemble import average
from ensemble.merge import greedy_selection, halves


def accuracy_on(labels):
    return lambda scores: float((scores.argmax(1) == labels).mean())


@pytest.fixture(params=range(8))
def pool(request):
    draw = np.random.default_rng(request.param)
    labels = draw.integers(3, size=80)
    skill = draw.uniform(0, 0.6, size=(6, 1, 1))
    noise = draw.dirichlet(np.ones(3), size=(6, 80))
    return skill * np.eye(3)[labels] + (1 - skill) * noise, labels


def test_every_choice_is_the_best_there_was_and_none_is_below_the_best_member(pool):
    scores, labels = pool
    score = accuracy_on(labels)
    best = max(score(one) for one in scores)
    assert score(average(scores[greedy_selection(scores, score)])) >= best
    chosen = greedy_selection(scores, score, rounds=4)
    for size in range(1, len(chosen) + 1):
        values = [score(average(scores[[*chosen[: size - 1], one]])) for one in range(6)]
        assert chosen[size - 1] == int(np.argmax(values))


def test_a_model_may_be_chosen_twice():
    labels = np.array([0, 0, 1])
    good = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]])
    other = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    chosen = greedy_selection(np.stack([good, other]), accuracy_on(labels))
    assert sorted(chosen) == [0, 0, 1]
    assert accuracy_on(labels)(average(np.stack([good, other])[chosen])) == 1


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_halves_part_the_examples(count):
    ids = np.array([f"x{i}" for i in range(count)], dtype=np.str_)
    first, second = halves(ids, seed=3)
    assert sorted([*first, *second]) == list(range(count))
    assert 0 <= len(first) - len(second) <= 1


def test_halves_do_not_depend_on_the_order_of_the_examples():
    ids = np.array([f"x{i}" for i in range(101)])
    order = np.random.default_rng(0).permutation(101)
    for mine, moved in zip(halves(ids, 3), halves(ids[order], 3), strict=True):
        assert set(ids[mine]) == set(ids[order][moved])
    assert set(halves(ids, 3)[0]) != set(halves(ids, 4)[0])
