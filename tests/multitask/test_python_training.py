"""`train` and `Run` from Python: their results depend on the configuration only."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import SettingsError
from common.files import read_state
from minbert.weights import read_tensors
from multitask import Run, RunConfig, train
from multitask.combiners import Combined, Combiner

TINY = {"encoder": "tiny", "limit": 8, "dev_limit": 8, "test_limit": 8, "epochs": 1}
ONE = RunConfig(tasks=("sts",), **TINY)
TWO = RunConfig(tasks=("sst", "sts"), **TINY)


def weights(run):
    found = {}
    for file in sorted((run.folder / "best").rglob("*.safetensors")):
        found |= {f"{file.name}/{key}": value for key, value in read_tensors(file).items()}
    assert found
    return found


def test_a_run_is_found_from_another_folder(tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(Path("tasks/sample").absolute())
    monkeypatch.setenv("HOME", str(tmp_path))
    config = ONE.changed(data="~/data")
    assert config.data == str(tmp_path / "data")
    run = train(config, "~/run")
    assert run.folder == tmp_path / "run"
    monkeypatch.chdir(tmp_path)
    assert Run("run").metrics != {}
    monkeypatch.chdir(tmp_path / "data")
    assert run.metrics == Run("~/run").metrics


class Counting(Combiner, name="counting"):
    """Counts of objectives, and the generator that a checkpoint keeps with them."""

    def start(self, objectives, seed):
        return {"seen": np.zeros(objectives), "generator": np.random.default_rng(0)}

    def combine(self, gram, losses, drawn):
        self.state["seen"][list(drawn)] += 1
        self.state["generator"].random()
        return Combined(np.ones(len(drawn)), "counted")


def test_the_state_of_a_combiner_is_kept(tmp_path):
    def interrupt(_):
        raise KeyboardInterrupt

    config = TWO.changed(combiner=Counting(), epochs=2)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", callbacks=[interrupt])
    stored = read_state(Run(tmp_path / "run").newest("last"))["combiner"]
    steps = (tmp_path / "run" / "telemetry.jsonl").read_text().splitlines()
    assert stored["seen"] == [len(steps)] * 2
    drawn, again = np.random.default_rng(0), Counting().for_run(2)
    drawn.random(len(steps))
    again.load_state_dict(stored)
    assert again.state["generator"].random() == drawn.random()


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
    run = train(ONE.changed(epochs=3), tmp_path / "run", callbacks=several)
    assert recorder.epochs == [(1, 1), (2, 2), (3, 3)]
    assert widths == [32] * 3
    last = run.metrics["history"][-1]
    assert recorder.curves["dev/sts/pearson", 3] == last["dev"]["sts"]["pearson"]


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"callbacks": [3]}, "callbacks: expected a list of functions, or of objects with"),
        ({"callbacks": "stop"}, "callbacks: expected a list of .*, found 'stop'"),
        ({"callbacks": 5}, "callbacks: expected a list of .*, found 5"),
        ({"folder": 5}, "folder: Expected `str`, got `int`, found 5"),
    ],
)
def test_a_wrong_argument_is_refused(tmp_path, wrong, line):
    with pytest.raises(SettingsError, match=line):
        train(ONE, **{"folder": tmp_path / "run", **wrong})
