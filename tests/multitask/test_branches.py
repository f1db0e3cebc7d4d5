"""Branches in training: last layers of each task, which follow only its losses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain import plain_losses, step_terms
from safetensors.torch import load_file
from tolerances import assert_near_in_norm

from common.errors import SettingsError
from multitask.assembly import assemble, build_model
from multitask.config_tasks import build_tasks
from multitask.loop.batches import next_batches
from multitask.run import train

BRANCH = {"branch": "top-1"}


def gradient(module):
    return torch.cat([p.grad.flatten() for p in module.parameters()])


def copied(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def test_only_the_layers_of_the_trained_tasks_move(make_trainer):
    trainer = make_trainer(**BRANCH)
    trainer.model.train()
    before = copied(trainer.model.branches)
    for _ in range(2):
        trainer.train_step(np.array([0, 0, 2]))
    for name, value in trainer.model.branches.state_dict().items():
        assert torch.equal(value, before[name]) == name.startswith("qqp."), name


@pytest.mark.numeric
@pytest.mark.parametrize("combiner", ["sum", "pcgrad", "mgda"])
@pytest.mark.parametrize("micro_batch", [None, 3])
def test_branches_follow_only_the_loss_of_their_task(make_trainer, combiner, micro_batch):
    """Whatever weights the combiner gives the objectives on the shared encoder."""
    changes = BRANCH | {"combiner": combiner, "micro_batch": micro_batch}
    trainer = make_trainer(dropout=False, batch_size=8, **changes)
    batches = next_batches(trainer.streams, np.arange(3))
    trainer.gradient(batches)
    found = {name: gradient(one) for name, one in trainer.model.branches.items()}
    for name, (rows,) in batches.items():
        trainer.model.zero_grad(set_to_none=True)
        texts = trainer.model.embed(trainer.splits[name]["train"].batch(rows), name)
        losses, _ = plain_losses(trainer, name, rows, texts)
        losses[name].backward()
        expected = gradient(trainer.model.branches[name])
        assert_near_in_norm(found[name], expected, step_terms(trainer))


def test_another_run_begins_with_the_branches_of_matching_tasks(base_config, tmp_path, capsys):
    small = BRANCH | {"limit": 12, "epochs": 1, "dev_limit": 8, "combiner": "sum"}
    train(replace(base_config, **small, tasks=("sst", "sts")), tmp_path / "first")
    saved = load_file(tmp_path / "first" / "best" / "heads.safetensors")
    settings = small | {"tasks": ("sst", "qqp"), "init": str(tmp_path / "first")}
    config = replace(base_config, **settings)
    model = build_model(config, build_tasks(config), torch.device("cpu"))
    assert (
        f"starts with the encoder of {config.init} and the head of sst" in capsys.readouterr().out
    )
    own = copied(model.branches["sst"])
    assert all(torch.equal(value, saved[f"branches.sst.{name}"]) for name, value in own.items())


def test_more_copies_than_layers_are_refused(base_config):
    with pytest.raises(SettingsError, match=r"^branch: expected at most top-2, .* found top-3$"):
        assemble(replace(base_config, branch="top-3"))
