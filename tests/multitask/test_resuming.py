"""A run that is stopped at any step and goes on is the run that was never stopped, bit for bit."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from plain import built_in

from multitask import task
from multitask.combiners import Combiner
from multitask.loop.telemetry import read_steps
from multitask.loop.trainer import Trainer
from multitask.regularizers import Smart
from multitask.sampling import FirstThenJoint, Sampler

STEPS = 4  # an epoch
REQUESTS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "requests.csv"
REPLIES = REQUESTS.with_name("replies.csv")
OWN = {
    one.name: one.to_json()
    for one in (
        task("urgency", train=REQUESTS, text="message", label="urgency", type="classification"),
        task("tags", train=REQUESTS, text="message", label="tags", type="multi-label"),
        task("minutes", train=REPLIES, text="better", label="minutes", type="regression"),
    )
}


JOINT = {"name": "sts", "pair": "joint"}
PRETRAINING = {
    "mode": "pretrain",
    "objective": "simcse",
    "tasks": ("sst",),
    "combiner": "sum",
    "sampling": "round-robin",
}


def stopped(trainer: Trainer, monkeypatch, step: int) -> None:
    """Train until an interruption after the checkpoint of a step."""
    trainer.checkpoint_every = 1
    save = trainer.save

    def interrupted():
        save()
        if trainer.progress.step == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(trainer, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trainer.fit()


def check_same(make_trainer, monkeypatch, *moments: int, **changes) -> None:
    changes = {"steps_per_epoch": STEPS, "epochs": 2, "dev_limit": 8} | changes
    whole = make_trainer("whole", **changes)
    whole.fit()
    for moment in moments:
        broken = make_trainer("broken", **changes)
        broken.resume()
        stopped(broken, monkeypatch, moment)
        torch.rand(5)  # a fresh process would have another random state
    again = make_trainer("broken", **changes)
    assert again.resume()
    assert again.progress.step == moments[-1]
    again.fit()
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name
    one, two = (replace(t.progress, seconds=0) for t in (whole, again))
    assert one == two
    lines = [list(read_steps(t.telemetry.file)) for t in (whole, again)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("sampling", built_in(Sampler))
def test_every_sampler_resumes_in_and_after_an_epoch(make_trainer, monkeypatch, sampling):
    check_same(make_trainer, monkeypatch, 1, STEPS, 6, sampling=sampling)


@pytest.mark.parametrize("combiner", built_in(Combiner))
def test_every_combiner_resumes(make_trainer, monkeypatch, combiner):
    check_same(make_trainer, monkeypatch, 3, combiner=combiner, sampling="round-robin")


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": FirstThenJoint(first_epochs=1)},
        {"tasks": ("sst", "qqp", JOINT), "regularizers": Smart({"sts": 1.0})},
        {"branch": "top-1", "freeze_encoder": True, "combiner": "sum"},
        {"branch": "top-1", "combiner": "pcgrad", "micro_batch": 3},
        {"precision": "bf16", "micro_batch": 3},
        {"keep": "last", "evaluate_every": 2},
        {"label_smoothing": 0.1, "regularizers": Smart({"sst": 1.0}), "micro_batch": 3},
        {
            "tasks": {"sst": {}, **OWN},
            "class_weights": "balanced",
            "regularizers": Smart({"sst": 1.0}),
            "micro_batch": 3,
        },
        *({"only": "sst", "objective": one, "batch_size": 16} for one in ("epo", "lacon")),
        PRETRAINING,
        PRETRAINING
        | {"objective": {"name": "superloss", "hard_top_k": 2, "hard_after": 1}, "batch_size": 16},
    ],
    ids=str,
)
def test_every_way_to_train_resumes(make_trainer, monkeypatch, changes):
    check_same(make_trainer, monkeypatch, 5, **changes)


def test_checkpoints_are_written_at_the_requested_interval(make_trainer, monkeypatch):
    trainer = make_trainer(steps_per_epoch=7, epochs=1)
    trainer.checkpoint_every = 3
    saved, save = [], trainer.save
    monkeypatch.setattr(trainer, "save", lambda: (saved.append(trainer.progress.step), save()))
    trainer.fit()
    assert saved == [3, 6, 7]


def test_a_run_that_ended_before_its_first_checkpoint_restarts(make_trainer):
    make_trainer("whole", epochs=1, steps_per_epoch=STEPS).fit()
    broken = make_trainer("run", epochs=1, steps_per_epoch=STEPS)
    broken.train_epoch(1)
    broken.telemetry.close()  # killed in the first write: steps, and no checkpoint
    again = make_trainer("run", epochs=1, steps_per_epoch=STEPS)
    assert not again.resume()
    again.fit()
    expected = again.folder.parent / "whole" / "telemetry.jsonl"
    assert again.telemetry.file.read_bytes() == expected.read_bytes()
