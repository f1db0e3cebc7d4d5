"""A step whose loss or gradient is not finite ends the run; the last checkpoint is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.errors import RunError
from common.files import read_state
from multitask.loop.step import StepGradient
from multitask.runs import Run, RunControl

INF = float("inf")


@pytest.mark.parametrize("what", ["loss of sst", "gradient of (sst|qqp|sts)", "gradient of step 3"])
def test_a_step_that_is_not_finite_ends_the_run(make_trainer, monkeypatch, what):
    trainer = make_trainer(steps_per_epoch=4, epochs=1, sampling="round-robin")
    trainer.control = RunControl(checkpoint_every=1)
    compute, kind = StepGradient.__call__, trainer.tasks["sst"].kind

    def loss(outputs, targets):
        return kind.loss(outputs, targets) * (INF if trainer.progress.step == 3 else 1.0)

    def gradient(self, batches, measure=False, step=0):
        result = compute(self, batches, measure, step)
        if step + 1 == 3:
            next(p for p in trainer.model.parameters() if p.grad is not None).grad[:] = INF
        return result

    if what == "loss of sst":
        poisoned = replace(trainer.tasks["sst"], kind=replace(kind, loss=loss))
        trainer.gradient.tasks["sst"] = poisoned
    elif what == "gradient of step 3":
        monkeypatch.setattr(StepGradient, "__call__", gradient)
    else:
        bias = trainer.model.bi_encoder.encoder.embeddings.norm.bias
        bias.register_hook(lambda found: found * (INF if trainer.progress.step == 3 else 1))
    line = f"expected a finite {what}, found (inf|nan); train again with a lower --lr, --head-lr"
    with pytest.raises(RunError, match=line):
        trainer.fit()
    newest = Run(trainer.folder).newest("last")
    assert read_state(newest)["progress"]["step"] == 2
