"""Callbacks are called after each evaluation."""

import pytest

from common.errors import SettingsError
from multitask import RunConfig, train
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
        train(CONFIG, **{"folder": tmp_path / "run", **wrong})
