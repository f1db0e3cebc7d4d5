"""A method of each role from a file outside the tree, on the command line and in Python."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from cli import main
from common.errors import SettingsError
from multitask import RunConfig, train
from multitask.errors import RunError
from multitask.methods import methods
from multitask.training import Run
from multitask.user_methods import load_methods
from serving import MultiTaskModel

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

    tilt: float = 2.0

    def combine(self, gram, losses, drawn):
        weights = [self.tilt if place == 0 else 1.0 for place in drawn]
        return Combined(weights, "tilted")


class Favourite(Sampler, name="favourite"):
    """The first task is drawn --favour times as often as another one."""

    favour: Positive = setting(2.0, help="how much more often the first task is drawn")

    def chances(self, work, epoch):
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

    compares = False
    strength: Positive = 1.0

    def loss(self, texts, groups):
        return self.strength * (texts[0] - texts[1]).square().mean()

    def source(self, config):
        from functools import partial

        return Texts(partial(sentences, config.tasks, config.own_tasks), "the tasks")


class Half(Protocol, name="half"):
    """The files as they are, under another name."""

    part: Count = 2

    def source(self, source, task, seed):
        return source


class Mood(TaskOptions, name="mood"):
    """The sentences of sst under another name."""

    def build(self):
        return replace(build_task("sst"), name="mood")
'''
BASE = "from multitask.combiners import Combiner"
TINY = ("--encoder", "tiny", "--epochs", "2", "--limit", "40", "--device", "cpu")
RUNS = {  # what a run is asked for, settings that it holds, and the task that it predicts
    "combiner": (
        "--mode multitask --tasks sst sts --combiner tilted --tilt 3",
        {"combiner": "tilted", "tilt": 3.0},
        "sst",
    ),
    "sampler": (
        "--mode multitask --tasks sst sts --sampling favourite --favour 4",
        {"sampling": "favourite", "favour": 4.0},
        "sst",
    ),
    "regulariser": (
        "--mode single --task sst --confident-weight 0.5 --confident-scale 0.1",
        {"confident_weight": {"sst": 0.5}, "confident_scale": 0.1},
        "sst",
    ),
    "objective": (
        "--mode single --task sst --objective smooth --smoothing 0.3",
        {"objective": "smooth", "smoothing": 0.3},
        "sst",
    ),
    "protocol": (
        "--mode single --task sst --protocol half --part 3",
        {"protocol": "half", "part": 3},
        "sst",
    ),
    "task": ("--mode single --task mood", {"tasks": ["mood"]}, "mood"),
    "pre-training": (
        "--mode pretrain --objective same --tasks sst --strength 2",
        {"objective": "same", "strength": 2.0},
        None,
    ),
}


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(CODE, "utf-8")
    return file


def imported(file):
    """The module of a user's file, as a script that lies beside it has it."""
    spec = spec_from_file_location("own_methods_of_a_test", file)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run(*arguments):
    """The exit status."""
    try:
        return main([str(one) for one in arguments])
    except SystemExit as ended:
        return ended.code


@pytest.mark.slow
@pytest.mark.parametrize("role", RUNS)
def test_a_method_from_outside_trains_resumes_and_predicts(role, own, tmp_path, capsys):
    flags, held, task = RUNS[role]
    folder = tmp_path / "run"
    asked = (*flags.split(), "--use", own, *TINY, "--output", folder)
    assert run(*asked) == 0
    config = json.loads((folder / "config.json").read_text())
    assert held.items() <= config.items()
    assert list(config["use"]) == ["own.py"]
    assert (folder / "code" / "own.py").read_text("utf-8") == CODE
    (folder / "metrics.json").unlink()
    assert run(*asked, "--resume") == 0
    if role == "combiner":
        assert set(json.loads((folder / "metrics.json").read_text())["combiner_steps"]) == {
            "tilted"
        }
    if task is None:
        return
    capsys.readouterr()
    file = tmp_path / "texts.txt"
    file.write_text("a film to love\n", "utf-8")
    assert run("--mode", "predict", "--run", folder, "--input", file) == 1
    assert "expected --use own.py" in capsys.readouterr().err
    assert run("--mode", "predict", "--run", folder, "--input", file, "--use", own) == 0
    assert task in capsys.readouterr().out
    assert run("--mode", "export", "--run", folder, "--output", tmp_path / "e", "--use", own) == 0
    own.write_text(CODE + "\n", "utf-8")
    assert run("--mode", "predict", "--run", folder, "--input", file, "--use", own) == 1
    assert "found another one" in capsys.readouterr().err
    assert run(*asked, "--resume") == 1
    assert "use is" in capsys.readouterr().err


@pytest.mark.slow
def test_objects_do_the_same_in_python(own, tmp_path):
    module = imported(own)
    small = {"encoder": "tiny", "epochs": 1, "limit": 40, "device": "cpu"}
    config = RunConfig(
        tasks=(module.Mood(), "sts"),
        combiner=module.Tilted(tilt=3),
        sampling=module.Favourite(favour=4),
        regularizers=(module.Confident(weight={"mood": 0.5}),),
        protocol=module.Half(part=3),
        **small,
    )
    done = train(config, tmp_path / "several")
    assert set(done.metrics["combiner_steps"]) == {"tilted"}
    assert done.config.flat().items() >= {"tilt": 3.0, "favour": 4.0, "part": 3}.items()
    assert done.config.regularizers == config.regularizers
    assert done.model.predict(["a film to love"])["mood"].labels
    with pytest.raises(RunError, match=r"expected --use own.py"):
        Run(tmp_path / "several")
    again = MultiTaskModel.load(tmp_path / "several", use=config.outside)
    assert again.tasks == ("mood", "sts")
    smooth = train(RunConfig(tasks=("sst",), objective=module.Smooth(), **small), tmp_path / "one")
    assert smooth.config.objective.smoothing == 0.1
    same = train(RunConfig(tasks=("sst",), objective=module.Same(), **small), tmp_path / "before")
    assert same.config.pretrains
    assert same.model.encode(["a film"]).shape == (1, 32)


def test_flags_of_methods_from_outside_are_shown_and_checked(own, capsys):
    assert run("--mode", "multitask", "--use", own, "--help-all") == 0
    shown = capsys.readouterr().out
    assert "--tilt" in shown
    assert "tilted: Weight the first objective by --tilt" in shown
    assert "--favour" in shown
    tilted = ("--mode", "multitask", "--use", own, "--combiner", "tilted")
    assert run(*tilted, "--tilt", "abc") == 2
    assert capsys.readouterr().err == (
        "run.py: --tilt: expected a number, found 'abc' (see --help)\n"
    )


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("x = (", "SyntaxError"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("x = 1", "expected a class of a method, found none"),
        (
            "from multitask.combiners import Combiner\nclass A(Combiner, name='sum'): pass",
            "built in",
        ),
        (
            "from multitask.combiners import Combiner\nclass A(Combiner, name='A b'): pass",
            "a name of",
        ),
    ],
)
def test_a_file_without_methods_is_refused_in_one_line(code, found, tmp_path, capsys):
    file = tmp_path / "own.py"
    file.write_text(code, "utf-8")
    assert run("--mode", "multitask", "--use", file) in (1, 2)
    said = capsys.readouterr().err
    assert said.startswith("run.py: ")
    assert found in said
    assert said.count("\n") == 1


def test_a_name_that_is_taken_is_refused_in_python():
    from multitask.combiners import Combiner

    class Taken(Combiner, name="sum"):
        """Another sum."""

    with pytest.raises(SettingsError, match="expected another name than sum"):
        RunConfig(tasks=("sst", "sts"), combiner=Taken())


def test_a_missing_file_is_refused(tmp_path, capsys):
    assert run("--mode", "multitask", "--use", tmp_path / "none.py") == 1
    assert "none.py" in capsys.readouterr().err


def test_methods_of_a_file_are_known_by_role(own):
    loaded = load_methods(str(own))
    assert len(loaded) == 7
    assert "tilted" in methods("combiner", loaded)
    assert "tilted" not in methods("combiner")


TASK = '''
from common.settings import Count, setting
from tasks import build_task
from tasks.registry import TaskOptions


class Moods(TaskOptions, name="moods"):
    """Sentiment again."""

    layers: Count = setting(1, help="layers of the head")

    def build(self):
        from dataclasses import replace

        return replace(build_task("sst"), name="moods")
'''


def test_options_of_a_task_from_outside_have_flags(tmp_path, capsys):
    file = tmp_path / "moods.py"
    file.write_text(TASK, "utf-8")
    command = ["--mode", "single", "--use", str(file), "--task", "moods", "--encoder", "tiny"]
    shown = run(*command, "--help-all")
    assert (shown, "--moods-layers" in capsys.readouterr().out) == (0, True)
    assert run(*command, "--moods-layers", "0") == 2
    assert "--moods-layers: expected a whole number from 1" in capsys.readouterr().err
    folder = tmp_path / "run"
    short = ("--limit", "16", "--dev-limit", "8", "--epochs", "1", "--output", str(folder))
    assert run(*command, "--moods-layers", "3", *short) == 0
    config = json.loads((folder / "config.json").read_text())
    assert config["task_options"] == {"moods": {"layers": 3}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    output: int = 2\n", "--output: expected another name for a setting"),
        ("    epochs: int = 2\n", "--epochs: expected another name for this setting"),
        ("    size: Nonsense = 2\n", "expected methods, found NameError"),
        ("    pass\n\nraise SystemExit(3)\n", "expected methods, found SystemExit"),
    ],
)
def test_a_class_that_cannot_be_used_is_refused_in_one_line(body, expected, tmp_path, capsys):
    file = tmp_path / "mine.py"
    head = "from __future__ import annotations\nfrom multitask.combiners import Combiner\n"
    file.write_text(f'{head}\n\nclass Mine(Combiner, name="mine"):\n{body}', "utf-8")
    command = ("--mode", "multitask", "--use", str(file), "--combiner", "mine")
    assert run(*command, "--encoder", "tiny", "--limit", "8") in (1, 2)
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1
