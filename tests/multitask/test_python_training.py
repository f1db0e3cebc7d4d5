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


class Recorder:
    """Keep what each hook receives."""

    def __init__(self):
        self.curves, self.epochs = {}, []

    def on_scalars(self, values, step):
        self.curves |= {(name, step): value for name, value in values.items()}

    def on_epoch_end(self, trainer):
        self.epochs.append((trainer.progress.epoch, trainer.progress.step))


def test_an_object_and_a_function_are_called_after_each_epoch(tmp_path):
    recorder, widths = Recorder(), []
    several = [recorder, lambda trainer: widths.append(trainer.model.bi_encoder.width)]
    run = train(replace(ONE, epochs=3), tmp_path / "run", callbacks=several)
    assert recorder.epochs == [(1, 1), (2, 2), (3, 3)]
    assert widths == [32] * 3
    last = run.metrics["history"][-1]
    assert recorder.curves["dev/sts/pearson", 3] == last["dev"]["sts"]["pearson"]
