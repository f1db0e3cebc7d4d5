"""Merging one task's models: votes and averages, greedy selection, the examples of the scores."""

from dataclasses import replace

import numpy as np
import pytest
from golden_files import golden_cases

from common.errors import UserError
from ensemble import average, majority_vote
from ensemble.merge import METHODS, first_half, greedy_selection, merge
from tasks import build_task
from tasks.predictions import Scores


@pytest.fixture
def pool():
    """Three models of 60 dev and 20 test examples of five classes, rows in different orders."""
    draw = np.random.default_rng(0)
    tables = {}
    for split, count in (("dev", 60), ("test", 20)):
        ids = np.array([f"{split}{i}" for i in range(count)])
        targets = draw.integers(5, size=count)
        tables[split] = {}
        for model in ("a", "b", "c"):
            values = 0.3 * np.eye(5)[targets] + 0.7 * draw.dirichlet(np.ones(5), size=count)
            order = draw.permutation(count)
            labels = targets[order] if split == "dev" else None
            tables[split][model] = Scores(ids[order], values[order].astype(np.float32), labels)
    return tables


def in_order(table, ids):
    place = {one: row for row, one in enumerate(table.ids)}
    return table.values[[place[one] for one in ids]].astype(np.float64)


def test_votes_and_averages_are_those_of_the_aligned_rows(pool):
    kind = build_task("sst").kind
    for split in ("dev", "test"):
        for method in ("vote", "average"):
            found = merge(pool, kind, method, seed=0).splits[split]
            first = pool[split]["a"]
            np.testing.assert_array_equal(found.ids, first.ids)
            assert (found.targets is None) == (split == "test")
            if split == "dev":
                np.testing.assert_array_equal(found.targets, first.targets)
            values = np.stack([in_order(table, found.ids) for table in pool[split].values()])
            expected = values.mean(0).argmax(1)
            if method == "vote":
                expected = majority_vote(values.argmax(2), values)
            np.testing.assert_array_equal(found.predictions, expected)
            np.testing.assert_allclose(found.values, values.mean(0), rtol=1e-6)


def test_greedy_selection_reports_on_the_other_half(pool):
    kind = build_task("sst").kind
    found = merge(pool, kind, "greedy", seed=3)
    table = found.splits["dev"]
    inside = first_half(table.ids, seed=3)
    assert inside.sum() == 30
    assert found.members["selected_on_examples"] == found.members["reported_examples"] == 30
    right = table.predictions == table.targets
    assert found.metrics["accuracy"] == pytest.approx(right[~inside].mean())
    # On the half it was chosen on it is no worse than any member.
    best = max(
        (in_order(model, table.ids).argmax(1) == table.targets)[inside].mean()
        for model in pool["dev"].values()
    )
    assert right[inside].mean() >= best
    assert sum(found.members["weights"].values()) >= 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.rows(np.arange(59)), "b and a have different examples: only one"),
        (lambda t: replace(t, values=t.values[:, :2]), r"b: expected values \(60, 5\)"),
        (lambda t: replace(t, targets=t.targets + 1), "b and a have different labels"),
    ],
)
def test_models_of_other_examples_shapes_or_labels_are_refused(pool, change, expected):
    dev = pool["dev"]
    with pytest.raises(UserError, match=expected):
        merge({"dev": dev | {"b": change(dev["b"])}}, build_task("sst").kind, "vote", seed=0)
    with pytest.raises(UserError, match="different examples: only one of them has dev"):
        merge({"dev": dev | {"a": dev["a"].rows(np.arange(59))}}, build_task("sst").kind, "vote", 0)


@pytest.mark.parametrize("method", METHODS)
def test_an_ensemble_of_one_model_is_that_model(pool, method):
    kind = build_task("sst").kind
    alone = {split: {"a": models["a"]} for split, models in pool.items()}
    found = merge(alone, kind, method, seed=0)
    for split, table in found.splits.items():
        np.testing.assert_array_equal(table.values, pool[split]["a"].values)
        np.testing.assert_array_equal(table.predictions, pool[split]["a"].values.argmax(1))
    assert found.metrics == found.members["dev"]["a"]


def accuracy_on(labels):
    return lambda scores: float((scores.argmax(1) == labels).mean())


@pytest.fixture(params=range(8))
def scored_pool(request):
    draw = np.random.default_rng(request.param)
    labels = draw.integers(3, size=80)
    skill = draw.uniform(0, 0.6, size=(6, 1, 1))
    noise = draw.dirichlet(np.ones(3), size=(6, 80))
    return skill * np.eye(3)[labels] + (1 - skill) * noise, labels


def test_greedy_selection_takes_the_best_model_in_each_round(scored_pool):
    scores, labels = scored_pool
    score = accuracy_on(labels)
    best = max(score(one) for one in scores)
    assert score(average(scores[greedy_selection(scores, score)])) >= best
    chosen = greedy_selection(scores, score, rounds=4)
    for size in range(1, len(chosen) + 1):
        values = [score(average(scores[[*chosen[: size - 1], one]])) for one in range(6)]
        assert chosen[size - 1] == int(np.argmax(values))


@golden_cases("ensemble_vote")
def test_votes_have_the_golden_values(case):
    inputs = case["inputs"]
    found = majority_vote(inputs["predictions"], inputs.get("probabilities"))
    assert found.tolist() == case["expected"]["prediction"]


@pytest.mark.parametrize(
    ("predictions", "probabilities", "expected"),
    [
        ([], None, "models x examples"),
        ([[0.5]], None, "classes from 0 to 0"),
        ([[2]], [[[0.5, 0.5]]], "classes from 0 to 1"),
        ([[0]], [[0.5]], r"finite numbers \(1, 1, 'classes'\)"),
        ([[1]], [[[0.5, float("nan")]]], "expected finite numbers"),
    ],
)
def test_votes_of_another_shape_are_refused(predictions, probabilities, expected):
    with pytest.raises(ValueError, match=expected):
        majority_vote(predictions, probabilities)


@golden_cases("ensemble_average")
def test_averages_have_the_golden_values(case):
    found = average(case["inputs"]["scores"])
    np.testing.assert_allclose(found, case["expected"]["mean"], rtol=1e-12, atol=1e-12)


def test_no_model_has_no_average():
    with pytest.raises(ValueError, match="at least one model"):
        average([])


def test_averages_of_float32_are_computed_in_float64():
    scores = np.random.default_rng(0).random((7, 50, 5)).astype(np.float32)
    found = average(scores)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, scores.astype(np.float64).mean(0), rtol=1e-15)
