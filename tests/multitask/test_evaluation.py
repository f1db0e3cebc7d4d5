"""Scores in file order, the overall scores, and the figure that selects an epoch."""

import numpy as np
import pytest
import torch
from plain import step_terms
from tolerances import assert_near

from multitask.loop.evaluation import score_split, selection_score
from tasks import build_task
from tasks.metrics import overall

METRICS = {
    "sst": {"accuracy": 0.5, "macro_f1": 0.4},
    "qqp": {"accuracy": 0.8, "f1": 0.7},
    "sts": {"pearson": 0.6, "spearman": 0.5},
}
TASKS = {name: build_task(name) for name in METRICS}


@pytest.mark.numeric
def test_scores_are_in_file_order(make_trainer):
    trainer = make_trainer()
    for name, task in trainer.tasks.items():
        split = trainer.splits[name]["dev"]
        scores = score_split(trainer.model, task, split)
        for row in (0, 7, 99):
            with torch.inference_mode():
                batch = split.batch(np.array([row]))
                texts = trainer.model.embed(batch)
                single = task.scores(trainer.model.heads[name], texts)[0]
            assert_near(scores[row], single, step_terms(trainer))


def test_the_selection_score_is_the_overall_score_of_the_trained_tasks():
    assert selection_score(METRICS, TASKS) == pytest.approx((0.5 + 0.8 + 0.8) / 3)
    assert overall({"sst": METRICS["sst"]}) == {}
    assert selection_score(METRICS, {"sts": TASKS["sts"]}) == pytest.approx(0.8)
    assert selection_score(METRICS, {"sst": TASKS["sst"]}) == pytest.approx(0.5)
