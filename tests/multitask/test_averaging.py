"""The average of the weights: its recursion, where it is used, and that training ignores it."""

import pytest
import torch

from common.errors import SettingsError
from multitask.averaging import NAME
from multitask.loop.evaluation import evaluate
from multitask.settings.config import RunConfig

SHORT = {"steps_per_epoch": 6, "epochs": 2, "dev_limit": 8, "limit": 20, "lr": 1e-3}


def weights_of(model):
    return [value.detach().double() for value in model.state_dict().values()]


def test_the_average_is_scored_and_kept_and_training_does_not_depend_on_it(
    make_trainer, monkeypatch
):
    plain = make_trainer("plain", **SHORT)
    plain.fit()
    trainer = make_trainer("averaged", average_weights=0.5, keep="last", **SHORT)
    expected, train_step, step = weights_of(trainer.model), trainer.train_step, 0

    def follow(drawn):
        nonlocal expected, step
        result, step = train_step(drawn), step + 1
        momentum = min(0.5, (1 + step) / (10 + step))
        pairs = zip(expected, weights_of(trainer.model), strict=True)
        expected = [momentum * mean + (1 - momentum) * now for mean, now in pairs]
        return result

    monkeypatch.setattr(trainer, "train_step", follow)
    trainer.fit()
    assert trainer.telemetry.file.read_bytes() == plain.telemetry.file.read_bytes()
    for name, value in plain.model.state_dict().items():
        assert torch.equal(value, trainer.model.state_dict()[name]), name
    average = trainer.followers[NAME]
    assert average.steps == step == 12
    for mean, value in zip(weights_of(average.mean.model), expected, strict=True):
        torch.testing.assert_close(mean, value, rtol=1e-5, atol=1e-6)
    dev = {name: splits["dev"] for name, splits in trainer.splits.items()}
    metrics, scores = evaluate(average.mean.model, trainer.tasks, dev)
    assert {n: trainer.progress.history[-1]["dev"][n] for n in metrics} == metrics
    assert trainer.best_dev is not None
    assert any((scores[n] != evaluate(trainer.model, trainer.tasks, dev)[1][n]).any() for n in dev)
    trainer.model.load(trainer.checkpoints.folder / "best")
    for mean, kept in zip(weights_of(average.mean.model), weights_of(trainer.model), strict=True):
        assert torch.equal(mean, kept)


@pytest.mark.parametrize("momentum", [0, 1, "much"])
def test_a_momentum_is_between_0_and_1(momentum):
    with pytest.raises(SettingsError, match="average_weights: expected a number above 0 and below"):
        RunConfig(tasks=("sst",), average_weights=momentum)
