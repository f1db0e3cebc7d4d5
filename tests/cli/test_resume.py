"""Interrupted runs end as if nothing had happened, bit for bit; damage ends in one line."""

import io
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from run_files import metrics, prediction_bytes, predictions, same, weights

from multitask.loop.trainer import Trainer


def interrupt(monkeypatch, name: str, epoch: int, after: bool) -> None:
    """Interrupt this process in a method at an epoch, after or before its work."""
    original = getattr(Trainer, name)

    def interrupted(self, *args: Any, **more: Any) -> Any:
        now = self.progress.epoch
        if now >= epoch and not after:
            raise KeyboardInterrupt
        result = original(self, *args, **more)
        if now >= epoch and after:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(Trainer, name, interrupted)


MOMENTS = {
    "within an epoch": ("train_step", 1, True),
    "while scoring": ("evaluate", 2, True),
    "between best and checkpoint": ("save", 2, False),
    "after the last epoch": ("fit", 0, True),
}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_a_resumed_run_is_the_same(moment, finished, run, run_ok, tmp_path, monkeypatch):
    folder, command = finished
    command = [*command, "--output", str(tmp_path / "run")]
    with monkeypatch.context() as patch:
        interrupt(patch, *moment)
        result = run(*command)
    assert result.returncode == 130
    assert "--resume" in result.stderr.splitlines()[-1]
    assert not (tmp_path / "run" / "metrics.json").exists()
    run_ok(*command, "--resume")
    assert prediction_bytes(tmp_path / "run") == prediction_bytes(folder)
    for file in ("model", "heads"):
        assert same(weights(tmp_path / "run", file), weights(folder, file))
    resumed, expected = metrics(tmp_path / "run"), metrics(folder)
    for key in ("dev", "history", "best_epoch", "epochs", "steps"):
        assert resumed[key] == expected[key]


@pytest.mark.parametrize(
    ("flags", "heads"),
    [
        ("--task sst --steps-per-epoch 1 --lr 1e-20 --head-lr 1e-20", "the head of sst"),
        ("--task qqp --qqp-head concat", "new heads"),  # a head of another shape is not used
    ],
)
def test_init_loads_encoder_and_fitting_heads(flags, heads, finished, small, run_ok, tmp_path):
    folder, _ = finished
    command = ("--mode", "single", "--encoder", "tiny", "--data", small, "--init", folder)
    result = run_ok(*command, *flags.split(), "--epochs", "1", "--output", tmp_path / "run")
    assert f"starts with the encoder of {folder} and {heads}" in result.stdout
    if "sst" in heads:  # nothing was learnt
        assert metrics(tmp_path / "run")["dev"]["sst"] == metrics(folder)["dev"]["sst"]
        assert predictions(tmp_path / "run", "sst", "test") == predictions(folder, "sst", "test")


def test_a_run_goes_on_with_the_settings_in_its_folder(interrupted, finished, error_line, run_ok):
    folder, _ = interrupted
    other = ("--mode", "multitask", "--seed", 3, "--output", folder, "--resume")
    line = error_line(1, *other)
    assert f"continue it by --config {folder / 'config.json'}" in line
    flags = ("--mode", "multitask", "--config", folder / "config.json", "--output", folder)
    run_ok(*flags, "--resume")
    assert metrics(folder)["dev"] == metrics(finished[0])["dev"]


COMMANDS = {
    "predict": lambda run, out: ["--mode", "predict", "--run", run],
    "evaluate": lambda run, out: ["--mode", "evaluate", "--predictions", run],
    "ensemble": lambda run, out: ["--mode", "ensemble", "--runs", run, "--output", out],
}


def damage(file: Path, kind: str, draw: random.Random) -> None:
    content = bytearray(file.read_bytes()) or bytearray(1)
    place = draw.randrange(len(content))
    file.unlink()
    if kind == "a folder":
        file.mkdir()
    elif kind == "a flipped bit":
        content[place] ^= 1 << draw.randrange(8)
        file.write_bytes(content)
    elif kind != "gone":
        file.write_bytes(content[: place if kind == "truncated" else 0])


@pytest.mark.parametrize("kind", ["truncated", "a flipped bit", "gone", "a folder", "empty"])
@pytest.mark.parametrize("state", ["finished", "interrupted"])
def test_damage_ends_in_a_right_answer_or_one_line(
    state, kind, finished, interrupted, run, tmp_path, monkeypatch
):
    whole, _ = finished if state == "finished" else interrupted
    draw, expected = random.Random(kind), prediction_bytes(finished[0])
    files = [one for one in sorted(whole.rglob("*")) if one.is_file() and one.suffix != ".csv"]
    for file in draw.sample(files, 4):
        folder = tmp_path / "damaged"
        shutil.copytree(whole, folder)
        damage(folder / file.relative_to(whole), kind, draw)
        again = [*finished[1], "--output", folder, "--resume"]
        for argv in (*(make(folder, tmp_path / "out") for make in COMMANDS.values()), again):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a cat\ta dog\n")))
            result = run(*argv)  # an exception that is not reported in lines fails here
            if result.returncode:
                assert result.stderr.strip(), (file, argv)
            elif argv is again:
                assert prediction_bytes(folder) == expected, file
        shutil.rmtree(folder)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
