"""Folders put in place whole, and training state that comes back exactly."""

import random
import shutil
import subprocess
import sys

import pytest
import torch
from torch import nn

from common.atomic_files import NEW, OLD, temporary_name
from common.json_files import integrity_error
from multitask.storage.checkpoint import Checkpoints, load_training, save_training
from multitask.storage.checkpoint_folders import (
    SUMS,
    CheckpointError,
    newest_first,
    publish,
    published,
)


def write(text):
    return lambda folder: (folder / "file").write_text(text)


def test_a_failure_while_writing_keeps_the_old_folder_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "best"
    publish(target, write("good"))

    def fail(folder):
        (folder / "file").write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        publish(target, fail)
    assert integrity_error(target) is None
    assert (published(target) / "file").read_text() == "good"
    assert [path.name for path in tmp_path.iterdir()] == ["best"]
    publish(target, write("new"))
    assert (target / "file").read_text() == "new"
    assert published(tmp_path / "never") is None


def test_a_folder_that_was_being_replaced_is_restored(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    publish(tmp_path / "best", write("best"), {})
    (tmp_path / "best").rename(temporary_name(tmp_path / "best", OLD))
    checkpoints.check_best(1)
    assert integrity_error(tmp_path / "best") is None


def test_incomplete_checkpoints_are_removed_at_the_end(tmp_path):
    (tmp_path / "step-notes.tmp").mkdir()
    for name in ("best", "step-00000001"):
        temporary_name(tmp_path / name, NEW).mkdir()
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(2, *trained(1), {"step": 2})
    assert newest_first(tmp_path) == [tmp_path / "step-00000002"]
    checkpoints.forget()
    assert [path.name for path in tmp_path.iterdir()] == ["step-notes.tmp"]


DAMAGES = {
    "a byte more": lambda folder: (folder / "file").write_text("good "),
    "no file": lambda folder: (folder / "file").unlink(),
    "another file": lambda folder: (folder / "other").write_text(""),
    "a folder in its place": lambda folder: ((folder / "file").unlink(), (folder / "file").mkdir()),
    "no sums": lambda folder: (folder / SUMS).unlink(),
    "empty sums": lambda folder: (folder / SUMS).write_text(""),
    "sums of no text": lambda folder: (folder / SUMS).write_bytes(b"\xff\xfe"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_detected(tmp_path, damage):
    publish(tmp_path / "best", write("good"))
    damage(tmp_path / "best")
    with pytest.raises(CheckpointError, match=r"damaged|cannot be read|found none") as error:
        published(tmp_path / "best")
    assert "\n" not in str(error.value)


def trained(seed, width=3):
    torch.manual_seed(seed)
    model = nn.Linear(width, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(5, width)).square().sum().backward()
        optimizer.step()
    return model, optimizer


def test_training_state_is_restored_exactly(tmp_path):
    model, optimizer = trained(1)
    kept = {"mine": {"weight": torch.arange(3.0)}, "smart": {}}
    save_training(tmp_path, model, optimizer, {"epoch": 3}, kept)
    other, other_optimizer = trained(2)
    state, others = load_training(tmp_path, other, other_optimizer)
    assert state == {"epoch": 3}
    assert list(others) == ["mine"]
    assert torch.equal(others["mine"]["weight"], torch.arange(3.0))
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    for net, opt in ((model, optimizer), (other, other_optimizer)):
        opt.zero_grad()
        net(torch.ones(1, 3)).sum().backward()
        opt.step()
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_two_checkpoints_are_kept_and_the_newest_is_used(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.load(*trained(1)) is None
    for step in (5, 10, 999_999_999, 1_000_000_000):
        checkpoints.save(step, *trained(1), {"step": step})
    assert [p.name for p in newest_first(tmp_path)] == ["step-1000000000", "step-999999999"]
    assert checkpoints.load(*trained(1))[0] == {"step": 1_000_000_000}
    checkpoints.forget()
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_newest_checkpoint_is_reported_and_the_one_before_is_used(tmp_path, capsys):
    checkpoints = Checkpoints(tmp_path)
    for step in (5, 10):
        checkpoints.save(step, *trained(1), {"step": step})
    damaged = newest_first(tmp_path)[0]
    file = damaged / "state.safetensors"
    file.write_bytes(file.read_bytes()[:-20])
    assert checkpoints.load(*trained(2))[0] == {"step": 5}
    (line,) = capsys.readouterr().out.splitlines()
    assert str(damaged) in line
    with pytest.raises(CheckpointError, match="expected the weights of this run") as error:
        checkpoints.load(*trained(1, width=4))
    assert "\n" not in str(error.value)
    shutil.rmtree(newest_first(tmp_path)[1])
    with pytest.raises(CheckpointError, match="found 1 damaged"):
        checkpoints.load(*trained(2))


def test_none_of_500_damaged_checkpoints_is_loaded(tmp_path, capsys):
    """A bit flipped, bytes gone at the end or in the middle, bytes more, a file gone."""
    checkpoints, draw = Checkpoints(tmp_path), random.Random(0)
    checkpoints.save(5, *trained(1), {"progress": {"epoch": 1}, "streams": {"sst": [0, 3]}})
    (folder,) = newest_first(tmp_path)
    whole = {file: file.read_bytes() for file in sorted(folder.iterdir())}
    for _ in range(500):
        file = draw.choice(sorted(whole))
        content, place = bytearray(whole[file]), draw.randrange(len(whole[file]))
        kind = draw.randrange(5)
        if kind == 0:
            content[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del content[place:]
        elif kind == 2:
            del content[place : place + draw.randrange(1, 9)]
        elif kind == 3:
            content[place:place] = draw.randbytes(3)
        if kind == 4:
            file.unlink()
        else:
            file.write_bytes(content)
        with pytest.raises(CheckpointError, match="found 1 damaged") as error:
            checkpoints.load(*trained(2))
        assert "\n" not in str(error.value)
        file.write_bytes(whole[file])
    assert checkpoints.load(*trained(2)) is not None
    assert len(capsys.readouterr().out.splitlines()) == 500


FILLS = """
import resource, sys, torch
from pathlib import Path
from multitask.storage.checkpoint import Checkpoints
torch.manual_seed(0)
model = torch.nn.Linear(300, 50)
optimizer = torch.optim.AdamW(model.parameters())
checkpoints = Checkpoints(Path(sys.argv[1]))
checkpoints.save(1, model, optimizer, {"step": 1})
size = sum(file.stat().st_size for file in Path(sys.argv[1]).rglob("*"))
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for point in range(20):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size * point // 20, hard))
    try:
        checkpoints.save(2, model, optimizer, {"step": 2, "filler": "x" * 2 * size})
        print("written")
    except (OSError, ValueError) as error:
        print("refused:", " ".join(str(error).split()))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert checkpoints.load(model, optimizer)[0] == {"step": 1}
    assert [path.name for path in Path(sys.argv[1]).iterdir()] == ["step-00000001"]
"""


@pytest.mark.slow
def test_a_disk_that_fills_up_at_any_of_20_points_leaves_the_checkpoint_before(tmp_path):
    command = [sys.executable, "-c", FILLS, str(tmp_path / "checkpoint")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert len(lines) == 20
    assert all(line.startswith("refused: ") for line in lines)
    assert any("File too large" in line for line in lines)
