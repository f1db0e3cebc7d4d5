"""Merging one task's models: what each method predicts, and on which examples it is scored."""

import numpy as np
import pytest

from ensemble import majority_vote
from ensemble.merge import METHODS, halves, merge
from tasks import build_task
from tasks.predictions import PredictionError, Scores


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
            values = np.stack([in_order(table, found.ids) for table in pool[split].values()])
            expected = values.mean(0).argmax(1)
            if method == "vote":
                expected = majority_vote(values.argmax(2), values)
            np.testing.assert_array_equal(found.predictions, expected)
            np.testing.assert_allclose(found.values, values.mean(0), rtol=1e-6)


def test_similarities_are_averaged(pool):
    kind = build_task("sts").kind
    draw = np.random.default_rng(1)
    ids, targets = np.array(["x", "y", "z"]), np.array([1.0, 2.0, 4.0], np.float32)
    models = {name: Scores(ids, draw.random(3, np.float32), targets) for name in "ab"}
    found = merge({"dev": models}, kind, "vote", seed=0)
    mean = np.mean([model.values for model in models.values()], axis=0)
    np.testing.assert_allclose(found.splits["dev"].predictions, mean, rtol=1e-6)
    assert found.metrics["pearson"] == pytest.approx(np.corrcoef(mean, targets)[0, 1])


def test_greedy_selection_reports_on_what_it_did_not_see(pool):
    kind = build_task("sst").kind
    found = merge(pool, kind, "greedy", seed=3)
    table = found.splits["dev"]
    inside, outside = halves(table.ids, seed=3)
    assert (found.selected_on, found.reported) == (len(inside), len(outside)) == (30, 30)
    right = table.predictions == table.targets
    assert found.metrics["accuracy"] == pytest.approx(right[outside].mean())
    # On the half it was chosen on it is no worse than any member.
    best = max(
        (in_order(model, table.ids).argmax(1) == table.targets)[inside].mean()
        for model in pool["dev"].values()
    )
    assert right[inside].mean() >= best
    assert sum(found.weights.values()) >= 1


@pytest.mark.parametrize("method", METHODS)
def test_an_ensemble_of_one_model_is_that_model(pool, method):
    kind = build_task("sst").kind
    alone = {split: {"a": models["a"]} for split, models in pool.items()}
    found = merge(alone, kind, method, seed=0)
    for split, table in found.splits.items():
        np.testing.assert_array_equal(table.values, pool[split]["a"].values)
        np.testing.assert_array_equal(table.predictions, pool[split]["a"].values.argmax(1))
    assert found.metrics == found.members["a"]


def test_scores_without_labels_are_refused(pool):
    with pytest.raises(PredictionError, match="a: expected labels with the dev scores"):
        merge({"dev": pool["test"]}, build_task("sst").kind, "vote", seed=0)
