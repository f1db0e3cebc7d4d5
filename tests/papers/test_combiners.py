"""The table of combiners: its own methods, tasks and columns, and rows of a user's methods."""

import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch

from cli import main
from common.files import digest
from multitask import RunConfig, train
from multitask.sampling import Uniform, Workload
from papers.combiners import COMMON, Adaptive, DynamicAverage, GeometricMean, SmoothTchebycheff
from papers.evidence import stars
from papers.store import Store
from tasks import data_folder
from tasks.own_tasks import complete_task

LOSSES = np.array([0.5, 2.0, 3.0])
TERMS = {
    GeometricMean(): lambda losses: losses.prod() ** (1 / 3),
    SmoothTchebycheff(smoothing=0.7, warm_up=1).for_run(3): lambda losses: (
        0.7 * torch.logsumexp((losses / torch.tensor([1.0, 3.0, 2.0])).log() / 0.7, 0)
    ),
}
FILE = """
import numpy as np
from multitask.combiners import Combined, Combiner

class Half(Combiner, name="half"):
    def combine(self, gram, losses, drawn):
        return Combined(np.full(len(losses), 0.5), "half")
"""


@pytest.mark.parametrize("method", TERMS)
def test_weights_are_the_gradient_of_the_combined_loss(method):
    losses = torch.tensor(LOSSES, requires_grad=True)
    method.combine(None, np.array([1.0, 3.0, 2.0]), range(3))  # STCH's warm-up
    (3 * TERMS[method](losses)).backward()
    found = method.combine(None, LOSSES, range(3)).weights
    np.testing.assert_allclose(found, losses.grad.numpy(), rtol=1e-12)


def test_dynamic_average_weighs_by_the_ratio_of_the_last_two_windows():
    combiner = DynamicAverage(window=2).for_run(3)
    for losses in ([4.0, 2.0], [4.0, 2.0], [2.0, 1.8], [2.0, 1.8]):
        assert combiner.combine(None, np.array(losses), (0, 2)).weights.tolist() == [1, 1]
    ratios = np.array([0.5, 1.0, 0.9])  # the second objective had no batches
    expected = 3 * np.exp(ratios / 2) / np.exp(ratios / 2).sum()
    again = DynamicAverage(window=2).for_run(3)
    again.load_state_dict(combiner.state_dict())
    for one in (combiner, again):
        found = one.combine(None, LOSSES, range(3)).weights
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_adaptive_sampling_prefers_low_scores():
    work = Workload((9, 9), 2, 2, 3, 4, 1)
    assert Adaptive().probabilities(work, 1).tolist() == [0.5, 0.5]
    dev = {"sst": {"accuracy": 0.4, "f1": 0.9}, "sts": {"pearson": 0.9}, "overall": 0.7}
    later = replace(work, history=[{"dev": dev}])
    found = Adaptive().probabilities(later, 2)
    np.testing.assert_allclose(found, np.array([2.0, 1.0]) / 3)
    relative = Adaptive(baselines=(0.8, 0.75)).probabilities(later, 2)
    np.testing.assert_allclose(relative, np.array([1.1, 0.6]) / 1.7)


def test_a_sampler_sees_the_dev_scores_of_the_epochs_so_far(tmp_path):
    seen = []

    class Seen(Uniform, name="seen"):
        def probabilities(self, work, epoch):
            seen.append([one["dev"]["sst"]["accuracy"] for one in work.history])
            return super().probabilities(work, epoch)

    small = {"encoder": "tiny", "precision": "fp32", "limit": 8, "dev_limit": 8, "epochs": 2}
    run = train(RunConfig(tasks=["sst", "sts"], sampling=Seen(), **small), tmp_path / "run")
    first = run.metrics["history"][0]["dev"]["sst"]["accuracy"]
    assert seen == [[], [], [], [first]]  # the plan of all epochs, then each epoch


def test_relabelled_tasks_have_the_texts_of_their_origin():
    changes = {
        ("sst", "sst-swapped"): lambda labels: np.array([4, 1, 2, 3, 0])[labels],
        ("sts", "sts-contradicted"): lambda labels: labels * ((labels < 3) | (labels >= 4)),
        ("sts", "sts-opposed"): lambda labels: 5 - labels,
    }
    for names, change in changes.items():
        tasks = [complete_task({"name": name}).build() for name in names]
        origin, other = (task.read(data_folder("sample"), "dev") for task in tasks)
        assert origin.texts == other.texts
        assert (change(origin.targets) == other.targets).all()
        assert len({*other.targets.tolist()}) > 2


def test_stars_follow_holm_and_the_other_split():
    # The smallest of four p against 0.05 / 4, and so on; dev contradicts the row with 0.011.
    values = {0.03: False, 0.016: True, 0.011: False, 0.026: False}
    assert stars([mock.Mock(p=p, contradicted=p == 0.011) for p in values]) == [*values.values()]


def test_a_users_combiner_becomes_a_row_by_one_flag(tmp_path):
    file, results = tmp_path / "half.py", tmp_path / "results"
    file.write_text(FILE)
    command = f"""--mode reproduce --table combiners --use {file} --encoder tiny --precision fp32
        --limit 24 --epochs 1 --lr 1e-3 --seeds 1 --results {results} --runs {tmp_path}""".split()
    with mock.patch.dict(COMMON, steps_per_epoch=2):
        assert main([*command, "--rows", "own-half"]) == 0
    assert re.search(r"\n\|half\|\d", (results / "combiners.md").read_text())
    own = Store(results, "combiners").settings["own-half"]
    assert (own["combiner"], own["code"]) == ("half", digest(file))
    with pytest.raises(SystemExit):
        main(["--mode", "reproduce", "--table", "bees", "--use", str(file)])
