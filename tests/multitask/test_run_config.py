"""RunConfig: every value, and each contradiction that matters, is checked with one line."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plain import built_in
from two_losses import TwoLosses

from common.errors import SettingsError
from multitask.optimizer import AdamW
from multitask.regularizers import Distillation, Smart
from multitask.run import train
from multitask.settings.config import RunConfig, merged
from multitask.settings.methods import ROLES
from multitask.settings.run_settings import PRESETS
from tasks.built_in import SST

ALL = {"mode": "multitask", "tasks": ("sst", "qqp", "sts"), "encoder": "tiny"}
VALUES = [
    ({"optimizer": {"lr": -1}}, r"lr: Expected float > 0.0, found -1"),
    ({"batch_size": 2.5}, "batch_size: Expected int, found 2.5"),
    ({"limit": {"sst": 0}}, "limit: Expected int >= 1"),
    ({"tasks": {"sst": {"head": "round"}}}, "head: Expected one of hidden, softmax, found 'round'"),
    ({"tasks": {"sst": {"tail": 1}}}, "task sst: no setting 'tail'; it has head"),
    ({"tasks": "sst"}, "tasks: give a list, such as"),
    ({"tasks": ("sst", "nope")}, "tasks: no task 'nope'; choose from sst"),
    ({"tasks": (SST,)}, "tasks: no name: <class"),
    ({"regularizers": ("smart",)}, "smart_weight: must be above 0"),
    ({"combiner": "typo"}, "combiner: no method 'typo'; choose from .*pcgrad.*--use adds yours"),
    (
        {"combiner": {"name": "epo", "wish": 1}},
        "combiner epo: no setting 'wish'; it has preference",
    ),
    ({"combiner": {"name": "epo", "preference": (1, 1, 0)}}, "preference: must be above 0"),
    ({"tasks": {"mine": {"file": "a.csv"}}}, "mine: no key 'file'"),
    ({"preset": "beess"}, "preset: choose from bees, .*, found 'beess'"),
    ({"epoch": 3}, "no setting 'epoch'; did you mean epochs?"),
    ({"protocol": "few-shot"}, "protocol few-shot: needs shots"),
    ({"objective": {"name": np.array([1, 2])}}, "objective: no method"),
    ({"limit": range(3)}, r"limit: Expected .*, found \[0, 1, 2\]"),
    ({"data": ""}, "data: Expected str of length >= 1, found ''"),
]
WITH_LOSS = {"tasks": ("sst", TwoLosses(), "sts")}
TOGETHER = [  # settings with which the run would silently be another one
    ({"limit": {"cola": 5}}, "limit: cola is not among the tasks"),
    ({"regularizers": Smart({"cola": 1.0})}, "smart_weight: cola is not among the tasks"),
    ({"sampling": {"name": "hybrid", "first_task": "cola"}}, "first_task: cola is not among"),
    ({"tasks": ("sst", "sst")}, "tasks: sst is named twice"),
    ({"tasks": {"sst": [1]}}, r"tasks: no name: \[1\]"),
    ({"combiner": {"name": "epo", "preference": (1, 2)}}, "preference: needs 3 numbers, for sst"),
    ({"objective": "simcse"}, "objective simcse: not available in mode multitask"),
    ({"objective": "scl", "tasks": ("sts",), "mode": ""}, "objective scl: needs a task with cla"),
    ({"class_weights": "balanced", "tasks": ("sts",), "mode": ""}, "class_weights: needs a task"),
    ({"objective": "scl", **WITH_LOSS}, "two: its own loss and objective scl cannot"),
    ({"label_smoothing": 0.1, **WITH_LOSS}, "two: its own loss and label_smoothing cannot"),
    ({"label_smoothing": 0.1, "objective": "lacon"}, "label_smoothing and objective lacon"),
    ({"objective": "leam"}, "objective leam: needs single texts, or pairs with pair joint"),
    ({"objective": "epo", "combiner": "famo"}, "combiner famo: not with objective epo"),
    ({"branch": "top-0"}, "branch: Expected str, such as top-2, found 'top-0'"),
    (
        {"sampling": {"name": "hybrid", "first_task": "sst"}, "schedule": "first-then-joint"},
        "schedule first-then-joint: give sampling hybrid the same first task",
    ),
    ({"regularizers": Distillation(1.0)}, "distillation_weight: needs teacher"),
    ({"gradients": "representation"}, "gradients representation: needs one task with several"),
]  # fmt: skip
SIMCSE = {"mode": "pretrain", "objective": "simcse", "tasks": ("sst",)}
PRETRAINING = [
    ({"objective": "supcon", "tasks": ("sts",)}, "supcon: needs single texts with classes, not st"),
    ({"objective": "pairs"}, "objective pairs: needs qqp or sts, found sst"),
    ({"branch": "top-1"}, "branch: not available in mode pretrain"),
    ({"protocol": "held-out"}, "protocol: need an objective of classes"),
    ({"regularizers": Smart(1.0)}, "regularizers: not available in mode pretrain"),
    ({"objective": None}, "objective: mode pretrain needs one, such as"),
    ({"batch_size": 1}, "batch_size: must be 2 or more"),
    ({"objective": "nli", "tasks": ()}, "nli: objective nli needs this file"),
]


@pytest.mark.parametrize(
    ("changes", "line"),
    [(ALL | changes, line) for changes, line in VALUES + TOGETHER]
    + [(SIMCSE | changes, line) for changes, line in PRETRAINING],
    ids=lambda case: str(case)[60:120],
)
def test_a_wrong_setting_is_refused_in_one_line(changes, line):
    with pytest.raises(SettingsError) as error:
        RunConfig(**changes)
    assert re.search(line, str(error.value))
    assert "\n" not in str(error.value)
    assert error.value.status == 2


NEEDED = {  # what a method is used with
    **{n: {"shots": 20} for n in ("few-shot", "capped", "few-a-class")},
    "nli": {"nli": "nli.csv"},
    "smart": {"weight": 1.0},
    "distillation": {"weight": 1.0},
}
BUILT_IN = [(role, name) for role, base in ROLES.items() for name in built_in(base)]


@pytest.mark.parametrize(("role", "name"), BUILT_IN)
def test_a_method_by_name_equals_the_object_and_is_restored_from_json(role, name):
    chosen = {"name": name, **NEEDED.get(name, {})}
    cls = built_in(ROLES[role])[name]
    tasks = ("sst", "qqp", "sts") if role in ("sampling", "schedule", "combiner") else ("sst",)
    tasks = ("qqp", "sts") if getattr(cls, "of_pairs", False) else tasks
    further = {"tasks": () if getattr(cls, "needs_file", False) else tasks}
    if name == "distillation":
        further["teacher"] = ("runs/a",)
    named = RunConfig(**further, **{role: [chosen] if role == "regularizers" else chosen})
    method = getattr(named, role)
    assert RunConfig(**further, **{role: method}) == named
    assert RunConfig(**json.loads(json.dumps(named.to_json()))) == named
    assert replace(named, seed=named.seed) == named


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({"tasks": ("sst",)}, "single"),
        ({"tasks": ("sst", "sts")}, "multitask"),
        ({"tasks": ("sst", "sts"), "objective": "simcse"}, "pretrain"),
        ({}, ""),
    ],
)
def test_the_mode_follows_from_tasks_and_objective(settings, mode):
    assert RunConfig(**settings).mode == mode


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_set_of_defaults(name):
    mode = "pretrain" if "pretrain" in PRESETS[name] else "single"
    config = RunConfig(mode=mode, tasks=("sst",), preset=name).to_json()
    preset = PRESETS[name]["settings"] | PRESETS[name].get(mode, {})
    for key, value in preset.items():
        found = config[key]
        if isinstance(value, dict):
            found = {part: config[key][part] for part in value}
        assert json.loads(json.dumps(value)) == found
    given = RunConfig(mode=mode, tasks=("sst",), preset=name, optimizer={"lr": 5e-4})
    assert given.optimizer.lr == 5e-4
    assert given.optimizer.head_lr == config["optimizer"]["head_lr"]
    assert RunConfig(**config).to_json() == config


def test_an_objective_has_defaults_which_settings_override():
    made = RunConfig(tasks=("sst",), objective="supcon", epochs=2)
    assert (made.class_balanced, made.batch_size, made.epochs) == (True, 64, 2)
    assert made.optimizer.lr == 3e-5


def test_cross_entropy_replaces_the_objective_of_a_preset():
    for ce in ("ce", {"name": "ce"}):
        assert RunConfig(tasks=("sst",), preset="scl-moo", objective=ce).objective is None


def test_settings_replace_others_one_by_one():
    before = {"tasks": ["qqp", {"name": "sts", "head": "cosine"}], "optimizer": {"lr": 1e-3}}
    given = {"tasks": {"qqp": {"pair": "joint"}, "sts": {"activation": "none"}}}
    after = RunConfig(**merged(before, given | {"optimizer": {"head_lr": 2e-3}}))
    sts = {"name": "sts", "head": "cosine", "activation": "none"}
    assert after.to_json()["tasks"] == [{"name": "qqp", "pair": "joint"}, sts]
    assert after.optimizer == AdamW(lr=1e-3, head_lr=2e-3)
    alone = merged(before, {"tasks": ["qqp"], "optimizer": AdamW(lr=2e-3)})
    assert RunConfig(**alone) == RunConfig(tasks=["qqp"], optimizer=AdamW(lr=2e-3))


def test_teachers_bring_distillation_unless_a_regulariser_learns_from_them():
    def weights(**given):
        made = RunConfig(tasks=("sst",), teacher=("run",), **given)
        assert replace(made, seed=2).regularizers == made.regularizers
        return [one.by_task(made.tasks) for one in made.regularizers]

    assert weights() == [{"sst": 1.0}]
    assert weights(regularizers=(Distillation(weight=0.5),)) == [{"sst": 0.5}]


def test_paths_and_numpy_numbers_are_stored_as_texts_and_numbers():
    given = {"data": Path("data"), "epochs": np.int64(2), "init": Path("runs/a")}
    config = RunConfig(tasks=np.array(["sst"]), **given)
    assert config == RunConfig(tasks=("sst",), data="data", epochs=2, init="runs/a")


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path):
    without_data = RunConfig(tasks=("sst",), encoder="tiny", data=str(tmp_path / "missing"))
    for config in (without_data, RunConfig()):
        with pytest.raises(ValueError, match=r"missing|tasks: name one or more"):
            train(config, tmp_path / "runs" / "one")
    assert not (tmp_path / "runs" / "one").exists()
