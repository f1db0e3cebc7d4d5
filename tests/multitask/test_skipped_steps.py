"""Steps whose loss or gradient is not finite: skipped, counted, and the end of a run."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from common.errors import RunError
from common.files import read_state
from multitask.control import RunControl
from multitask.loop.step import StepGradient
from multitask.loop.telemetry import read_steps
from multitask.loop.trainer import SKIPPED, Trainer
from multitask.runs import Run

INF = float("inf")
STEPS = 4  # an epoch


def poisoned(trainer: Trainer, monkeypatch, steps: tuple[int, ...]) -> None:
    """Let the gradient of these steps be infinite."""
    gradient = StepGradient.__call__

    def call(self, batches, measure=False, step=0):
        result = gradient(self, batches, measure, step)
        if step + 1 in steps:
            next(p for p in trainer.model.parameters() if p.grad is not None).grad[:] = INF
        return result

    monkeypatch.setattr(StepGradient, "__call__", call)


def test_a_step_that_is_not_finite_is_skipped_and_counted(make_trainer, monkeypatch, capsys):
    trainer = make_trainer(steps_per_epoch=STEPS, epochs=1, optimizer={"weight_decay": 0.5})
    poisoned(trainer, monkeypatch, (2,))
    take, weights = trainer.train_step, []

    def kept(drawn):
        result = take(drawn)
        weights.append(torch.cat([p.detach().flatten() for p in trainer.model.parameters()]))
        return result

    monkeypatch.setattr(trainer, "train_step", kept)
    trainer.train_epoch(1)
    assert [torch.equal(*pair) for pair in pairwise(weights)] == [True, False, False]
    assert trainer.progress.step == STEPS
    assert all(p.isfinite().all() for p in trainer.model.parameters())
    assert "skipped step 2: expected a finite gradient of this step, found" in (
        capsys.readouterr().out
    )
    trainer.telemetry.close()
    lines = list(read_steps(trainer.telemetry.file))
    assert [line["status"] == SKIPPED for line in lines] == [False, True, False, False]


@pytest.mark.parametrize("combiner", ["sum", "pcgrad", "uncertainty"])
def test_a_step_with_a_nan_loss_is_skipped(make_trainer, monkeypatch, combiner):
    """The combiner never sees it, and the step after it begins as any other."""
    trainer = make_trainer(steps_per_epoch=STEPS, epochs=1, combiner=combiner)
    loss = trainer.tasks["sst"].kind.loss
    kind = replace(
        trainer.tasks["sst"].kind,
        loss=lambda outputs, targets: (
            loss(outputs, targets) * (float("nan") if trainer.progress.step == 2 else 1.0)
        ),
    )
    trainer.gradient.tasks["sst"] = replace(trainer.tasks["sst"], kind=kind)
    trainer.plan = Always()
    trainer.train_epoch(1)
    trainer.telemetry.close()
    statuses = [line["status"] for line in read_steps(trainer.telemetry.file)]
    assert statuses.count(SKIPPED) == 1
    assert str(trainer.combiner.state_dict()).find("nan") == -1


class Always:
    """A plan in which every step has every task."""

    def steps(self, epoch, history=()):
        return [np.arange(3)] * STEPS


def test_too_many_skipped_steps_end_the_run_with_a_checkpoint(make_trainer, monkeypatch):
    trainer = make_trainer(steps_per_epoch=9, epochs=1)
    monkeypatch.setattr("multitask.loop.trainer.SKIP_LIMIT", 3)
    poisoned(trainer, monkeypatch, (2, 3, 5, 6, 7, 8))
    with pytest.raises(RunError, match="3 steps in a row were skipped; step 7: expected a finite"):
        trainer.fit()
    other = make_trainer(steps_per_epoch=9, epochs=1)
    assert other.resume()
    assert other.progress.step == 7
    for one, two in zip(trainer.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(one, two)


def test_weights_that_are_not_finite_are_not_saved(make_trainer, monkeypatch, capsys):
    trainer = make_trainer(steps_per_epoch=3, epochs=1)
    trainer.control = RunControl(checkpoint_every=1)
    monkeypatch.setattr("multitask.loop.trainer.SKIP_LIMIT", 1)
    step = trainer.train_step

    def take(drawn):
        result = step(drawn)
        if trainer.progress.step == 2:
            with torch.no_grad():
                trainer.model.bi_encoder.encoder.layers[0].down.bias.fill_(INF)
        return result

    monkeypatch.setattr(trainer, "train_step", take)
    with pytest.raises(RunError):
        trainer.fit()
    newest = Run(trainer.folder).newest("last")
    assert read_state(newest)["progress"]["step"] == 1
    assert "the weights are not finite; the previous one is kept" in capsys.readouterr().out
