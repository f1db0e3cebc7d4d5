"""Folders put in place whole, and training state that comes back exactly."""

import pytest
import torch
from torch import nn

from multitask.checkpoint import (
    CheckpointError,
    load_training,
    publish,
    published,
    save_training,
)


def test_publish_replaces_the_old_folder_whole(tmp_path):
    target = tmp_path / "best"
    for text in ("one", "two"):
        publish(target, lambda folder, text=text: (folder / "file").write_text(text))
        assert (target / "file").read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["best"]


def test_a_failure_while_writing_keeps_the_old_folder(tmp_path):
    target = tmp_path / "best"
    publish(target, lambda folder: (folder / "file").write_text("good"))

    def fail(folder):
        (folder / "file").write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        publish(target, fail)
    assert (published(target) / "file").read_text() == "good"
    publish(target, lambda folder: (folder / "file").write_text("new"))
    assert (target / "file").read_text() == "new"


def test_between_the_two_renames_the_old_folder_is_found(tmp_path):
    publish(tmp_path / "best", lambda folder: (folder / "file").write_text("old"))
    (tmp_path / "best").rename(tmp_path / "best.old")
    assert (published(tmp_path / "best") / "file").read_text() == "old"
    assert published(tmp_path / "never") is None

    def fail(folder):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        publish(tmp_path / "best", fail)
    assert (published(tmp_path / "best") / "file").read_text() == "old"
    publish(tmp_path / "best", lambda folder: (folder / "file").write_text("new"))
    assert [path.name for path in tmp_path.iterdir()] == ["best"]


def trained(seed):
    torch.manual_seed(seed)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(5, 3)).square().sum().backward()
        optimizer.step()
    return model, optimizer


def test_training_state_comes_back_exactly(tmp_path):
    model, optimizer = trained(1)
    kept = {"proximal": {"weight": torch.arange(3.0)}, "smart": {}}
    save_training(tmp_path / "last", model, optimizer, {"epoch": 3}, kept)
    other, other_optimizer = trained(2)
    state, others = load_training(tmp_path / "last", other, other_optimizer)
    assert state == {"epoch": 3}
    assert list(others) == ["proximal"]
    assert torch.equal(others["proximal"]["weight"], torch.arange(3.0))
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    for net, opt in ((model, optimizer), (other, other_optimizer)):
        opt.zero_grad()
        net(torch.ones(1, 3)).sum().backward()
        opt.step()
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_damaged_checkpoint_is_told_in_one_line(tmp_path):
    model, optimizer = trained(1)
    save_training(tmp_path / "last", model, optimizer, {})
    file = tmp_path / "last" / "state.safetensors"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CheckpointError, match="cannot be read") as error:
        load_training(tmp_path / "last", model, optimizer)
    assert "\n" not in str(error.value)
