"""Linear evaluation: what scikit-learn finds on the encoder's embeddings, and nothing else."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from minbert.bi_encoder import BiEncoder
from multitask.settings.config import RunConfig
from pretrain.probe import ITERATIONS, STRENGTHS, linear_evaluation, regression
from tasks import build_task, data_folder
from tasks.kinds import classification

CONFIG = RunConfig(mode="probe", tasks=("sst",), encoder="tiny", limit=60)


def test_it_is_the_regression_on_the_encoders_embeddings():
    result, tables = linear_evaluation(CONFIG)
    encoder, task = BiEncoder.from_pretrained("tiny"), build_task("sst")
    limits = {"train": 60, "dev": None}
    splits = {s: task.read(data_folder("sample"), s, limit) for s, limit in limits.items()}
    vectors = {s: encoder.encode(x.texts[0], normalize=True) for s, x in splits.items()}
    figures = {}
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=ITERATIONS)
        model.fit(vectors["train"], splits["train"].targets)
        figures[strength] = model.score(vectors["dev"], splits["dev"].targets)
    assert result["dev"]["sst"]["accuracy"] == pytest.approx(max(figures.values()))
    assert figures[result["strength"]["sst"]] == max(figures.values())
    assert tables["sst"].keys() == {"dev", "test"}
    np.testing.assert_allclose(tables["sst"]["test"].values.sum(1), 1, rtol=1e-5)
    assert "test" not in result  # whose labels nobody knows


class Known:
    """Right on dev with the second and the fourth strength, on test with the first alone."""

    def __init__(self, C, max_iter):  # noqa: N803
        self.strength, self.classes_ = STRENGTHS.index(C), np.array([0, 1])

    def fit(self, vectors, targets):
        return self

    def predict_proba(self, vectors):
        right = self.strength in ((1, 3) if len(vectors) == DEV else (0,))
        return np.eye(2)[vectors[:, 0] if right else 1 - vectors[:, 0]]


DEV, TEST = 6, 8


def test_only_dev_chooses_the_strength_and_the_least_of_equals(monkeypatch):
    monkeypatch.setattr("sklearn.linear_model.LogisticRegression", Known)
    targets = {split: np.arange(n) % 2 for split, n in (("train", 4), ("dev", DEV), ("test", TEST))}
    space = SimpleNamespace
    splits = {split: space(examples=space(targets=t)) for split, t in targets.items()}
    vectors = {split: t[:, None] for split, t in targets.items()}
    chosen, scores = regression(vectors, splits, classification(2), "sst2")
    assert chosen == STRENGTHS[1]
    assert (scores["dev"].argmax(1) == targets["dev"]).all()
    assert (scores["test"].argmax(1) != targets["test"]).all()


@pytest.mark.parametrize("pair", ["bi", "joint"])
def test_pairs_and_labelled_tests(pair):
    config = replace(CONFIG, tasks={"mrpc": {"pair": pair}}, protocol="held-out")
    result, tables = linear_evaluation(config)
    assert result["test"]["mrpc"].keys() == {"accuracy", "f1", "matthews"}
    assert tables["mrpc"]["test"].values.shape == (60, 2)
