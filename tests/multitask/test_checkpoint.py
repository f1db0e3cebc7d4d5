"""Checkpoints are complete or not there, and training state comes back exactly."""

import json
import random
import shutil

import pytest
import torch
from torch import nn

from common.errors import RunError
from common.files import write_json
from multitask.run_folder import load_last, locked, save, save_last
from multitask.runs import Run

CONFIG = {"mode": "single", "tasks": ["sst"], "seed": 1}


@pytest.fixture
def run(tmp_path):
    write_json(tmp_path / "config.json", CONFIG)
    return Run(tmp_path)


def trained(seed, width=3):
    torch.manual_seed(seed)
    model = nn.Linear(width, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(5, width)).square().sum().backward()
        optimizer.step()
    return model, optimizer


def save_step(run, step):
    save_last(run, *trained(1), {"step": step})


def names(run):
    return sorted(one.name for one in run.folder.iterdir() if one.is_dir())


def test_training_state_is_restored_exactly(run):
    assert load_last(run, *trained(1)) is None
    save_step(run, 3)
    model, optimizer = trained(1)
    other, other_optimizer = trained(2)
    assert load_last(run, other, other_optimizer) == {"step": 3}
    for net, opt in ((model, optimizer), (other, other_optimizer)):
        opt.zero_grad()
        net(torch.ones(1, 3)).sum().backward()
        opt.step()
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_checkpoint_replaces_the_one_before(run):
    for step in (1, 2):
        save_step(run, step)
        assert names(run) == ["last"]
        assert load_last(run, *trained(2))["step"] == step
    with pytest.raises(OSError, match="disk full"):
        save(run, "last", lambda folder: (_ for _ in ()).throw(OSError("disk full")), {})
    assert names(run) == ["last"]


@pytest.mark.parametrize("there", [(".last.old", ".last.new"), (".last.old", "last")])
def test_a_kill_while_it_is_replaced_leaves_one(run, there):
    """Before and after the new one gets its name."""
    save_step(run, 3)
    saved = (run.folder / "last").rename(run.folder / "saved")
    for name in there:
        shutil.copytree(saved, run.folder / name)
    shutil.rmtree(saved)
    with locked(run):
        assert names(run) == ["last"]
        assert load_last(run, *trained(2))["step"] == 3


def differs(first, second):
    """Return whether two files have other content than white space between JSON."""
    try:
        return json.loads(first) != json.loads(second)
    except ValueError:
        return True


def test_none_of_300_damaged_checkpoints_is_loaded(run):
    """A bit flipped, bytes gone at the end or in the middle, bytes more, an empty file."""
    save_step(run, 5)
    whole = {one: one.read_bytes() for one in sorted((run.folder / "last").iterdir())}
    draw = random.Random(0)
    for _ in range(300):
        file = draw.choice(sorted(whole))
        content, place = bytearray(whole[file]), draw.randrange(len(whole[file]))
        kind = draw.choice(["bit", "end", "middle", "more", "empty"])
        if kind == "bit":
            content[place] ^= 1 << draw.randrange(8)
        elif kind in ("end", "empty"):
            del content[place if kind == "end" else 0 :]
        elif kind == "middle":
            del content[place : place + draw.randrange(1, 9)]
        elif kind == "more":
            content[place:place] = draw.randbytes(3)
        file.write_bytes(content)
        if differs(content, whole[file]):
            with pytest.raises(RunError) as error:
                load_last(run, *trained(2))
            assert "\n" not in str(error.value)
        file.write_bytes(whole[file])
    assert load_last(run, *trained(2)) is not None
