"""Linear evaluation: what scikit-learn finds on the encoder's embeddings, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from minbert.bi_encoder import BiEncoder
from multitask.settings.config import RunConfig
from pretrain.probe import ITERATIONS, STRENGTHS, linear_evaluation
from tasks import build_task, data_folder

CONFIG = RunConfig(mode="probe", tasks=("sst",), encoder="tiny", limit=60)


def test_it_is_the_regression_on_the_encoders_embeddings():
    result, tables, _ = linear_evaluation(CONFIG)
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
    best = [strength for strength in STRENGTHS if figures[strength] == max(figures.values())]
    assert result["strength"]["sst"] == best[0]  # the least of equals
    assert tables["sst"].keys() == {"dev", "test"}
    np.testing.assert_allclose(tables["sst"]["test"].values.sum(1), 1, rtol=1e-5)
    assert "test" not in result  # whose labels nobody knows


@pytest.mark.parametrize("pair", ["bi", "joint"])
def test_pairs_and_labelled_tests(pair):
    config = replace(CONFIG, tasks={"mrpc": {"pair": pair}}, protocol="held-out")
    result, tables, _ = linear_evaluation(config)
    assert result["test"]["mrpc"].keys() == {"accuracy", "f1", "matthews"}
    assert tables["mrpc"]["test"].values.shape == (60, 2)
