"""User-defined methods of each role, from a file of `--use` and in Python."""

import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest
from run_files import config, metrics

from common.errors import RunError, SettingsError
from multitask import RunConfig, train
from multitask.combiners import Combiner
from multitask.regularizers import Regularizer
from multitask.settings.methods import methods
from multitask.settings.user_methods import load_methods
from multitask.training import Run
from serving import MultiTaskModel
from tasks import TaskOptions

CODE = '''
"""A method of each role, as a user may write them."""

from dataclasses import replace

import numpy as np

from common.settings import Count, Positive, setting
from multitask.combiners import Combined, Combiner
from multitask.regularizers import Regularizer
from multitask.sampling import Sampler
from pretrain.objectives import PretrainObjective
from pretrain.texts import Texts, sentences
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
        import torch.nn.functional as F

        loss = lambda outputs, targets: F.cross_entropy(
            outputs, targets, label_smoothing=self.smoothing
        )
        return replace(task, kind=replace(task.kind, loss=loss))


class Same(PretrainObjective, name="same"):
    """Both views of a sentence are to be the same."""

    compares_examples = False
    strength: Positive = 1.0

    def loss(self, texts, groups):
        return self.strength * (texts[0] - texts[1]).square().mean()

    def source(self, config):
        from functools import partial

        tasks = [config.options_of(name).build() for name in config.tasks]
        return Texts(partial(sentences, tasks), "the tasks")


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
CLASS = (
    "from __future__ import annotations\nfrom multitask.combiners import Combiner\n"
    "class A(Combiner, "
)
TINY = ("--encoder", "tiny", "--epochs", "2", "--limit", "40", "--device", "cpu")
RUNS = {  # flags of a run of each role, and settings that it holds
    "combiner": ("multitask --tasks sst sts --combiner tilted --tilt 3", {"tilt": 3.0}),
    "sampler": ("multitask --tasks sst sts --sampling favourite --favour 4", {"favour": 4.0}),
    "regulariser": (
        "single --task sst --confident-weight 0.5 --confident-scale 0.1",
        {"confident_weight": {"sst": 0.5}, "confident_scale": 0.1},
    ),
    "objective": ("single --task sst --objective smooth --smoothing 0.3", {"smoothing": 0.3}),
    "protocol": ("single --task sst --protocol half --part 3", {"protocol": "half", "part": 3}),
    "task": ("single --task mood --mood-layers 3", {"task_options": {"mood": {"layers": 3}}}),
    "pre-training": ("pretrain --objective same --tasks sst --strength 2", {"strength": 2.0}),
}


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(CODE, "utf-8")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("role", RUNS)
def test_a_users_method_trains_resumes_and_predicts(role, own, tmp_path, run_ok, error_line):
    flags, settings = RUNS[role]
    folder = tmp_path / "run"
    command = ("--mode", *flags.split(), "--use", own, *TINY, "--output", folder)
    run_ok(*command)
    assert settings.items() <= config(folder).items()
    assert list(config(folder)["use"]) == ["own.py"]
    assert (folder / "code" / "own.py").read_text("utf-8") == CODE
    (folder / "metrics.json").unlink()
    run_ok(*command, "--resume")
    if role == "combiner":
        assert metrics(folder)["combiner_steps"].keys() == {"tilted"}
    if role == "pre-training":
        return
    file = tmp_path / "texts.txt"
    file.write_text("a film to love\n", "utf-8")
    predict = ("--mode", "predict", "--run", folder, "--input", file)
    assert "expected --use own.py" in error_line(1, *predict)
    assert ("mood" if role == "task" else "sst") in run_ok(*predict, "--use", own).stdout
    run_ok("--mode", "export", "--run", folder, "--output", tmp_path / "e", "--use", own)
    own.write_text(CODE + "\n", "utf-8")
    assert "found another one" in error_line(1, *predict, "--use", own)
    assert "found another: use." in error_line(1, *command, "--resume")


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
    assert result.config.flat().items() >= {"tilt": 3.0, "favour": 4.0, "part": 3}.items()
    assert result.config.regularizers == settings.regularizers
    assert result.model.predict(["a film to love"])["mood"].labels
    with pytest.raises(RunError, match=r"expected --use own.py"):
        Run(tmp_path / "several")
    again = MultiTaskModel.load(tmp_path / "several", use=settings.user_methods)
    assert again.tasks == ("mood", "sts")
    smooth = train(RunConfig(tasks=("sst",), objective=module.Smooth(), **small), tmp_path / "one")
    assert smooth.config.objective.smoothing == 0.1
    same = train(RunConfig(tasks=("sst",), objective=module.Same(), **small), tmp_path / "before")
    assert same.config.pretrains
    assert same.model.encode(["a film"]).shape == (1, 32)


@pytest.mark.parametrize("form", ["--use {0} {1}", "--use {0} --use {1}", "--use={0} --use {1}"])
def test_several_files_after_one_flag_or_several(form, own, tmp_path, run_ok, error_line):
    other = tmp_path / "other.py"
    code = (
        CLASS.replace("class A", "class Other") + "name='second'):\n  'Second.'\n  slope: float = 2"
    )
    other.write_text(code, "utf-8")
    flags = form.format(own, other).split()
    text = run_ok("--mode", "multitask", "--help-all", *flags, "--data", tmp_path).stdout
    assert "tilted: Weight the first" in text
    assert "second: Second." in text
    line = error_line(2, "--mode", "multitask", *flags, "--combiner", "second", "--slope", "abc")
    assert line == "run.py: --slope: expected a number, found 'abc' (see --help)"
    for mode in ("single", "predict"):
        assert "--use: expected at least one" in error_line(2, "--mode", mode, "--use")


def test_flags_of_users_methods_are_documented_and_checked(own, run_ok, error_line):
    loaded = load_methods(str(own))
    assert len(loaded) == 7
    assert "tilted" in methods("combiner", loaded).keys() - methods("combiner").keys()
    several = ("--mode", "multitask", "--use", own)
    mood = ("--mode", "single", f"--use={own}", "--task", "mood")
    text = run_ok(*several, "--help-all").stdout + run_ok(*mood, "--help-all").stdout
    for part in ("--tilt", "tilted: Weight the first objective by", "--favour", "--mood-layers"):
        assert part in text
    line = error_line(2, *several, "--combiner", "tilted", "--tilt", "abc")
    assert line == "run.py: --tilt: expected a number, found 'abc' (see --help)"
    line = error_line(2, *mood, "--mood-layers", "0")
    assert line.startswith("run.py: --mood-layers: expected a whole number from 1")
    line = error_line(2, "--mode", "single", "--task", "sst", "--use", own, "--favour", 2)
    assert "unrecognized arguments: --favour 2; a flag of mode multitask" in line


def test_an_invalid_value_without_a_default_needs_its_method_too(tmp_path, error_line):
    own, config = tmp_path / "own.py", tmp_path / "settings.yaml"
    own.write_text(
        "from multitask.combiners import Combiner\n\n\n"
        "class Scaled(Combiner, name='scaled'):\n    strength: float\n"
    )
    config.write_text("strength: abc\n")
    line = error_line(2, "--mode", "multitask", "--use", own, "--config", config)
    assert "--strength: expected combiner scaled, found 'abc' without it" in line


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (None, "own.py"),
        ("x = (", "SyntaxError"),
        ("x = 1", "expected a class of a method, found none"),
        (f"{CLASS}name='sum'): pass", "built in"),
        (f"{CLASS}name='A b'): pass", "a name of"),
        (f"{CLASS}name='a'):\n  output: int = 2", "--output: expected another name for a setting"),
        (f"{CLASS}name='a'):\n  epochs: int = 2", "--epochs: expected another name for this set"),
        (f"{CLASS}name='a'):\n  size: Nonsense = 2", "expected methods, found NameError"),
        ("raise SystemExit(3)", "expected methods, found SystemExit"),
    ],
)
def test_a_file_without_usable_methods_is_refused(code, expected, tmp_path, run):
    file = tmp_path / "own.py"
    if code is not None:
        file.write_text(code, "utf-8")
    command = ("--mode", "multitask", "--use", file, "--combiner", "a", "--encoder", "tiny")
    result = run(*command, "--limit", "8")
    assert result.returncode in (1, 2)
    (line,) = result.stderr.splitlines()
    assert line.startswith("run.py: ")
    assert expected in line


def test_a_name_of_a_built_in_method_is_refused_in_python():
    class Taken(Combiner, name="sum"):
        """Another sum."""

    with pytest.raises(SettingsError, match="expected another name than sum"):
        RunConfig(tasks=("sst", "sts"), combiner=Taken())


@pytest.mark.parametrize("name", ["model", "optimizer"])
def test_a_regularizer_does_not_have_the_name_of_a_part_of_a_checkpoint(name):
    class Mine(Regularizer, name=name):
        """Nothing."""

    with pytest.raises(SettingsError, match=f"than {name}, which is a part of checkpoints$"):
        RunConfig(tasks=("sst",), regularizers=(Mine(weight=1.0),))


@pytest.mark.parametrize("name", ["keys", "train", "para", "overall"])
def test_a_reserved_name_of_a_users_task_is_refused(name):
    class Mine(TaskOptions, name=name):
        """A task of a user."""

    line = f"^tasks: expected another name than {name}, which is reserved$"
    with pytest.raises(SettingsError, match=line):
        RunConfig(tasks=(Mine(),))


def test_a_users_setting_with_the_name_of_another_modes_flag_leaves_messages_as_they_are(
    tmp_path, error_line
):
    code = (
        "from multitask.sampling import RoundRobin\n\n\n"
        'class Mine(RoundRobin, name="mine"):\n    """Mine."""\n\n    preferences: int = 2\n'
    )
    (tmp_path / "mine.py").write_text(code)
    command = ("--mode", "multitask", "--use", tmp_path / "mine.py", "--unheard-of", 1)
    assert error_line(2, *command) == "run.py: unrecognized arguments: --unheard-of 1 (see --help)"
