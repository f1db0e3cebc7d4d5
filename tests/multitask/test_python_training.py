"""`train` and `Run` from Python: their results depend on the configuration only."""

from dataclasses import replace
from pathlib import Path

from multitask import Run, RunConfig, train

TINY = {"encoder": "tiny", "limit": 8, "dev_limit": 8, "test_limit": 8, "epochs": 1}
ONE = RunConfig(tasks=("sts",), **TINY)


def test_a_run_is_found_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(Path("tasks/sample").absolute())
    monkeypatch.setenv("HOME", str(tmp_path))
    config = replace(ONE, data="~/data")
    assert config.data == str(tmp_path / "data")
    run = train(config, "~/run")
    assert run.folder == tmp_path / "run"
    monkeypatch.chdir(tmp_path)
    assert Run("run").metrics != {}
    monkeypatch.chdir(tmp_path / "data")
    assert run.metrics == Run("~/run").metrics


def test_callbacks_are_called_after_each_evaluation(tmp_path):
    epochs, widths = [], []
    several = [
        lambda trainer: epochs.append(trainer.progress.history[-1]),
        lambda trainer: widths.append(trainer.model.bi_encoder.width),
    ]
    run = train(replace(ONE, epochs=3), tmp_path / "run", callbacks=several)
    assert [one["step"] for one in epochs] == [1, 2, 3]
    assert epochs == run.metrics["history"]
    assert widths == [32] * 3
