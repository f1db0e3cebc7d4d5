"""Callbacks are called after each evaluation, may end training, and store curves."""

import pytest

from common.errors import SettingsError
from multitask import STOP, RunConfig, train
from multitask.control import EpochEnd

CONFIG = RunConfig(tasks=("sst",), encoder="tiny", limit=8, dev_limit=8, test_limit=8, epochs=3)


class Recorder:
    """Keep what each hook receives."""

    def __init__(self):
        self.curves, self.epochs = {}, []

    def on_scalars(self, values, step):
        self.curves |= {(name, step): value for name, value in values.items()}

    def on_epoch_end(self, end):
        self.epochs.append(end)


def test_an_object_and_a_function_are_called_after_each_epoch(tmp_path):
    recorder, ends = Recorder(), []
    run = train(CONFIG, tmp_path / "run", callbacks=[recorder, ends.append])
    assert recorder.epochs == ends
    assert [(end.epoch, end.epochs, end.step) for end in ends] == [(1, 3, 1), (2, 3, 2), (3, 3, 3)]
    history = run.metrics["history"]
    assert [end.metrics for end in ends] == [entry["dev"] for entry in history]
    assert [end.score for end in ends] == [entry["selection_score"] for entry in history]
    assert max(end.epoch for end in ends if end.better) == run.metrics["best_epoch"]
    assert isinstance(ends[0], EpochEnd)
    assert ends[0].model.bi_encoder.width == 32
    assert recorder.curves["dev/sst/accuracy", 3] == history[-1]["dev"]["sst"]["accuracy"]


def test_a_callback_that_returns_stop_ends_training_with_a_finished_run(tmp_path, capsys):
    def patient(end):
        return STOP if end.epoch == 2 else None

    run = train(CONFIG, tmp_path / "run", callbacks=[patient])
    assert run.metrics["epochs"] == 2
    assert (run.folder / "predictions" / "sst-test-output.csv").exists()
    assert "stopped by a callback after epoch 2" in capsys.readouterr().out
    train(CONFIG, tmp_path / "run")
    assert "finished, stopped by a callback after epoch 2; " in capsys.readouterr().out


def test_a_stop_is_stored_so_that_a_killed_run_does_not_go_on(tmp_path, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    whole = train(CONFIG, tmp_path / "whole", callbacks=[lambda end: STOP])
    with monkeypatch.context() as patched:
        patched.setattr("multitask.run.figures_of", killed)  # after the last step
        with pytest.raises(KeyboardInterrupt):
            train(CONFIG, tmp_path / "run", callbacks=[lambda end: STOP])
    resumed = train(CONFIG, tmp_path / "run", resume=True)
    assert resumed.metrics["epochs"] == whole.metrics["epochs"] == 1
    assert resumed.metrics["dev"] == whole.metrics["dev"]
    assert resumed.metrics["stopped"] == "stopped by a callback"


@pytest.mark.parametrize("callback", [3, "stop"])
def test_an_object_without_a_hook_is_refused(tmp_path, callback):
    with pytest.raises(SettingsError, match="callbacks: expected functions, or objects with on_s"):
        train(CONFIG, tmp_path / "run", callbacks=[callback])
