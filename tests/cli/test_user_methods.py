"""User-defined methods of each role, from a file of `--use` and in Python."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest
from run_files import config, metrics

from common.files import read_json, write_json
from multitask import RunConfig, train
from serving import load
from serving.export import export

CODE = '''
"""A method of each role, as a user may write them."""

from dataclasses import replace

import numpy as np
from torch.nn import CrossEntropyLoss

from common.settings import Count, Positive, setting
from multitask.combiners import Combined, Combiner
from multitask.regularizers import Regularizer
from multitask.sampling import Sampler
from pretrain.objectives import FileObjective
from tasks import TaskOptions, build_task
from tasks.objectives import Objective
from tasks.protocols import Protocol


class Tilted(Combiner, name="tilted"):
    """Weight the first objective by --tilt, the others by 1."""

    for_one_objective = True
    tilt: float = 2.0

    def combine(self, gram, losses, drawn):
        weights = [self.tilt if place == 0 else 1.0 for place in drawn]
        return Combined(weights, "tilted")


class Favourite(Sampler, name="favourite"):
    """The first task is drawn --favour times as often as another one."""

    favour: Positive = setting(2.0, help="how much more often the first task is drawn")

    def probabilities(self, work, epoch):
        weights = np.array([self.favour] + [1.0] * (len(work.sizes) - 1))
        return weights / weights.sum()


class Confident(Regularizer, name="confident"):
    """The sum of the squared outputs."""

    scale: Positive = 0.01

    def term(self, clean):
        return self.scale * clean.outputs.square().mean()


class Smooth(Objective, name="smooth"):
    """Cross-entropy with smoothed labels."""

    smoothing: float = 0.1

    def of_task(self, task):
        loss = CrossEntropyLoss(label_smoothing=self.smoothing)
        return replace(task, kind=replace(task.kind, loss=loss))


class Same(FileObjective, name="same"):
    """Both views of a sentence are to be the same."""

    compares_examples = False
    strength: Positive = 1.0

    def loss(self, texts, groups):
        return self.strength * (texts[0] - texts[1]).square().mean()


class Half(Protocol, name="half"):
    """The files as they are, under another name."""

    part: Count = 2

    def source(self, source, task, seed):
        return source


class Mood(TaskOptions, name="mood"):
    """The sentences of sst under another name."""

    layers: Count = setting(1, help="layers of the head")

    def build(self):
        return replace(build_task("sst"), name="mood")
'''
CLASS = "from multitask.combiners import Combiner\nclass A(Combiner, "
TINY = ("--encoder", "tiny", "--epochs", "2", "--limit", "40", "--device", "cpu")
RUNS = {  # flags of a run of each role, and a setting of the method that it holds
    "combiner": ("multitask --tasks sst sts --combiner tilted --tilt 3", '"tilt": 3.0'),
    "sampler": ("multitask --tasks sst sts --sampling favourite --favour 4", '"favour": 4.0'),
    "regulariser": ("single --task sst --confident-weight 0.5", '"weight": 0.5'),
    "objective": ("single --task sst --objective smooth --smoothing 0.3", '"smoothing": 0.3'),
    "protocol": ("single --task sst --protocol half --part 3", '"part": 3'),
    "task": ("single --task mood --mood-layers 3", '"layers": 3'),
    "pre-training": ("pretrain --objective same --tasks sst --strength 2", '"strength": 2.0'),
}


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(CODE, "utf-8")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("role", RUNS)
def test_a_users_method_trains_resumes_and_predicts(role, own, tmp_path, run_ok):
    flags, setting = RUNS[role]
    folder = tmp_path / "run"
    command = ("--mode", *flags.split(), "--use", own, *TINY, "--output", folder)
    run_ok(*command)
    assert setting in (folder / "config.json").read_text()
    (folder / "metrics.json").unlink()
    run_ok(*command, "--resume")
    if role == "combiner":
        assert metrics(folder)["combiner_steps"].keys() == {"tilted"}
    if role == "pre-training":
        return
    file = tmp_path / "texts.txt"
    file.write_text("a film to love\n", "utf-8")
    predict = ("--mode", "predict", "--run", folder, "--input", file, "--use", own)
    assert ("mood" if role == "task" else "sst") in run_ok(*predict).stdout
    run_ok("--mode", "export", "--run", folder, "--output", tmp_path / "e", "--use", own)


@pytest.mark.slow
def test_objects_of_users_classes_are_accepted_in_python(own, tmp_path):
    spec = spec_from_file_location("own_methods_of_a_test", own)
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    small = {"encoder": "tiny", "epochs": 1, "limit": 40, "device": "cpu"}
    settings = RunConfig(
        tasks=(module.Mood(), "sts"),
        combiner=module.Tilted(tilt=3),
        sampling=module.Favourite(favour=4),
        regularizers=(module.Confident(weight={"mood": 0.5}),),
        protocol=module.Half(part=3),
        **small,
    )
    result = train(settings, tmp_path / "several")
    assert set(result.metrics["combiner_steps"]) == {"tilted"}
    assert result.config.regularizers == settings.regularizers
    assert result.model.predict(["a film to love"])["mood"].labels
    assert load(tmp_path / "several").tasks == ("mood", "sts")
    export(tmp_path / "several", tmp_path / "exported", "transformers")
    stored = read_json(tmp_path / "exported" / "run.json")
    assert not {"combiner", "sampling"} & stored.keys(), "predictions do without them"
    assert stored["regularizers"] == []


def test_a_run_needs_its_methods_again(own, run_copy, error_line):
    folder, _ = run_copy
    content = config(folder)
    write_json(folder / "config.json", content | {"combiner": {"name": "unheard"}})
    line = error_line(1, "--mode", "predict", "--input", own, "--run", folder)
    assert "no method 'unheard'; choose from " in line
    assert "(--use adds yours)" in line


def test_flags_of_users_methods_are_documented_and_checked(own, tmp_path, run_ok, error_line):
    other = tmp_path / "other.py"
    code = CLASS.replace("class A", "class Other") + "name='second'):\n  'Second.'\n  slope: float"
    other.write_text(code + " = 2", "utf-8")
    several = ("--mode", "multitask", "--use", own)
    mood = ("--mode", "single", f"--use={own}", "--use", other, "--task", "mood")
    text = run_ok(*several, other, "--help-all").stdout + run_ok(*mood, "--help-all").stdout
    shown = ("--tilt", "tilted: Weight the first objective by", "--favour", "--mood-layers")
    for part in (*shown, "second: Second.", "--slope"):
        assert part in text
    line = error_line(2, *several, "--combiner", "tilted", "--tilt", "abc")
    assert line == "run.py: --tilt: Expected float, found 'abc' (see --help)"
    assert "--mood-layers: Expected int >= 1" in error_line(2, *mood, "--mood-layers", "0")


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        (None, 2, "own.py: there is no such Python file"),
        ("x = 1", 2, "--combiner: no method 'a'"),
        (f"{CLASS}name='sum'): pass", 1, "sum is built in"),
        (f"{CLASS}name='a'):\n  size: Nonsense = 2", 1, "NameError"),
    ],
)
def test_a_file_without_usable_methods_is_refused(code, status, expected, tmp_path, error_line):
    file = tmp_path / "own.py"
    if code is not None:
        file.write_text(code, "utf-8")
    command = ("--mode", "multitask", "--use", file, "--combiner", "a", *TINY)
    assert expected in error_line(status, *command)
