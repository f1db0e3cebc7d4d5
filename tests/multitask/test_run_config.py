"""RunConfig: every value and contradiction is checked in the constructor, with one line."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import SettingsError, UserError
from common.settings import setting
from multitask.combiners.epo import EPO
from multitask.config_tasks import build_tasks
from multitask.optimizer import AdamW
from multitask.regularizers import Smart
from multitask.run import complete
from multitask.sampling import Temperature
from multitask.settings.config import (
    RunConfig,
    check_complete,
    difference,
)
from multitask.settings.objective_rules import objectives_of
from tasks import TaskOptions, build_task

ALL = {"mode": "multitask", "tasks": ("sst", "qqp", "sts"), "encoder": "tiny"}
SST = {"mode": "single", "tasks": ("sst",), "encoder": "tiny"}
VALUES = [
    ({"precision": "fp8"}, "precision: expected one of auto, fp32, bf16, found 'fp8'"),
    ({"lr": -1}, "lr: expected a number above 0 and at most 1000000, found -1"),
    ({"epochs": 0}, "epochs: expected a whole number from 1 to 1000000, found 0"),
    ({"batch_size": 2.5}, "batch_size: expected a whole number from 1"),
    ({"warmup": 5}, "warmup: expected a number from 0 to 1, found 5"),
    ({"seed": True}, "seed: expected a whole number from 0"),
    ({"freeze_encoder": "no"}, "freeze_encoder: expected True or False, found 'no'"),
    ({"mode": "train"}, r"mode: expected one of \w+, \w+, "),
    ({"limit": -5}, "limit: expected a whole number from 1 to 1000000, or a share above 0"),
    ({"limit": {"sst": 0}}, "limit: sst: expected a whole number"),
    ({"smart_weight": {"sst": 1, "sts": -1}}, "smart_weight: sts: expected a number from 0"),
    ({"task_options": {"sst": 3}}, "task_options: sst: expected a mapping, found 3"),
    ({"label_smoothing": 1}, "label_smoothing: expected a number from 0 and below 1, or one by"),
    ({"tasks": "sst"}, "tasks: expected a sequence of names of tasks, found 'sst'"),
    ({"tasks": ("sst", "nope")}, "tasks: expected (one of sst, |names of tasks, found 'nope')"),
    ({"task_options": "sst"}, "task_options: expected .*, found 'sst'"),
    ({"regularizers": "smrt"}, "regularizers: expected some of smart, .*; did you mean smart?"),
    ({"smart_weight": {" ": -1}}, "smart_weight: ' ': expected a number from 0"),
    ({"regularizers": ("smart",)}, "smart_weight: expected a number above 0 with regularizer smar"),
    ({"combiner": "typo"}, "combiner: expected one of sum, pcgrad, epo, linear, "),
    ({"combiner": "epo", "preference": (1, 1, math.nan)}, "preference: expected a number from 0"),
    ({"combiner": "epo", "preference": (1, 1, 0)}, "preference: expected numbers above 0"),
    ({"smart_weight": {"sst": 1.0}, "smart_norm": "l1"}, "smart_norm: expected one of inf, l2"),
    ({"smart_weight": -1.0}, "smart_weight: expected a number from 0 .* by task, found -1.0"),
    ({"device": "gpu"}, "device: expected auto, cpu, cuda or cuda:N, found 'gpu'"),
    ({"data": " "}, "data: expected a name, found ' '"),
    ({"own_tasks": {"mine": {}}, "tasks": ("mine",)}, "mine"),
    ({"objective": "lacon", "label_terms": ("icl",), "label_spread": 0.7}, "label_spread: exp"),
    ({"branch": "2"}, "branch: expected top-K such as top-2, found '2'"),
    ({"protocol": "few-shot"}, "protocol few-shot: expected setting shots, found none"),
]
TOGETHER = [  # values that contradict each other
    ({"limit": {"cola": 5}}, "limit: expected one of sst, qqp, sts, found 'cola'"),
    ({"tasks": ("sst", "sst")}, "tasks: expected each task once, found sst twice"),
    ({"combiner": "epo", "preference": (1, 2)}, "preference: expected 3 numbers, for sst, qqp, s"),
    ({"preference": (0.2, 0.3, 0.5)}, "preference: expected combiner epo or linear or"),
    ({"smart_weight": {"cola": 1}}, "smart_weight: expected one of sst, qqp, sts, found 'cola'"),
    ({"smart_radius": 0.2}, "smart_radius: expected a smart_weight above 0"),
    ({"combiner": "pcgrad", "batches_per_step": 1}, "combiner pcgrad: expected steps with two"),
    ({"combiner": "pcgrad", "tasks": ("sst",)}, "combiner pcgrad: expected two objectives"),
    ({"combiner": "pcgrad", "freeze_encoder": True}, "combiner pcgrad: expected a shared encoder"),
    ({"layer_decay": 0.9, "freeze_encoder": True}, "freeze_encoder and layer_decay: expected only"),
    ({"sampling": "hybrid", "epochs": 1}, "first_epochs: expected fewer than epochs 1, found 1"),
    ({"temperature": {}}, "temperature: expected sampling temperature"),
    ({"projection_head": "linear"}, "projection_head: expected"),
    ({"objective": "simcse"}, "objective: expected mode pretrain for simcse"),
    ({"objective": "scl", "tasks": ("sts",)}, "objective scl: expected a task with classes"),
    ({"task_options": {"sst": {"head": "round"}}}, "task_options: sst: head: expected one of"),
    ({"task_options": {"sst": {"hat": "x"}}}, "task_options: sst: expected options of head"),
    ({"task_options": {"qqp": {"loss": "coral"}}}, "task_options: qqp: loss: expected one of"),
    (
        {"objective": "scl", "task_options": {"qqp": {"loss": "with-contrastive"}}},
        "objective scl and loss of qqp: expected at most one of them",
    ),
    ({"label_smoothing": {"cola": 0.1}}, "label_smoothing: expected one of sst, qqp, sts, found"),
    ({"label_smoothing": {"sts": 0.1}}, "label_smoothing: expected tasks with classes, found sts"),
    ({"label_smoothing": 0.1, "tasks": ("sts",)}, "label_smoothing: expected a task with classes"),
    (
        {"label_smoothing": 0.1, "task_options": {"qqp": {"loss": "with-contrastive"}}},
        "label_smoothing and loss of qqp: expected at most one of them",
    ),
    (
        {"label_smoothing": 0.1, "objective": "lacon"},
        "label_smoothing and objective lacon: expected at most one of them",
    ),
    ({"auxiliary": ("cola",)}, "auxiliary: expected one of sst, qqp, sts, found 'cola'"),
    ({"auxiliary": ("sts", "sts")}, "auxiliary: expected each task once, found sts twice"),
    ({"teacher": ("a", "b/../a")}, "teacher: expected each run once, found a twice"),
    ({"auxiliary": ("sts", "sst", "qqp")}, "auxiliary: expected a task that is not auxiliary"),
    ({"similarity_scale": 3.0, "tasks": ("sst",)}, "similarity_scale: expected a task of"),
    ({"keep": "last", "patience": 2}, "keep last and patience: expected at most one"),
    ({"task_options": {"qqp": {"pair": "joint", "loss": "with-contrastive"}}}, "pair joint"),
    ({"task_options": {"sts": {"pair": "joint", "activation": "none"}}}, "neither head nor activ"),
    ({"objective": "leam"}, "objective leam: expected single texts or pair joint, found qqp"),
    ({"objective": "lacon", "label_terms": ("lcl",), "batch_size": 1}, "batch_size: expected 2"),
    ({"objective": "epo", "batch_size": 1}, "batch_size: expected 2 or more with objective epo"),
    ({"branch_only": ("sst",)}, "branch_only: expected setting branch, found none"),
    ({"branch": "top-1", "epochs": 2, "probe_epochs": 1}, "branch and probe_epochs: expected"),
]
SIMCSE = {"mode": "pretrain", "objective": "simcse", "tasks": ("sst",)}
TEXT = SIMCSE | {"tasks": (), "text": "lines.txt"}
PRETRAINING = [
    (SIMCSE | {"objective": "supcon", "tasks": ("sts",)}, "supcon: expected tasks with classes"),
    (SIMCSE | {"objective": "superloss", "tasks": ("qqp",)}, "superloss: expected single texts or"),
    (SIMCSE | {"objective": "pairs"}, "tasks: expected qqp or sts with"),
    (SIMCSE | {"branch": "top-1"}, "branch: expected mode single or multitask, found pretrain"),
    (SIMCSE | {"protocol": "held-out"}, "protocol: expected"),
    (SIMCSE | {"combiner": "pcgrad"}, "combiner: expected mode single or multitask, fo"),
    (SIMCSE | {"label_smoothing": 0.1}, "label_smoothing: expected mode single or multitask"),
    (
        SIMCSE | {"batches_per_step": 2},
        "batches_per_step: expected mode multitask, found",
    ),
    (SIMCSE | {"smart_weight": {"sst": 1.0}}, "smart_weight: expected mode single or multitask, f"),
    (SIMCSE | {"freeze_encoder": True}, "freeze_encoder: expected mode single or multitask, found"),
    (TEXT | {"limit": {"sst": 3}}, "limit: expected one for all tasks in mode pretrain, found one"),
    (TEXT | {"first_task": "x"}, "first_task: expected sampling hybrid"),
    (TEXT | {"task_options": {"zz": {}}}, "task_options: expected an objective of classes"),
    (TEXT | {"similarity_scale": 3.0}, "similarity_scale: expected mode single or multitask"),
    (SIMCSE | {"objective": "nli", "tasks": ()}, "nli: expected a file with objective nli, found"),
]


def case_name(case):
    return str(case)[:60]


@pytest.mark.parametrize("key", ["label_smoothing", "class_weights"])
def test_a_setting_of_no_task_is_the_default_in_pre_training(key):
    assert not RunConfig(**SIMCSE, **{key: {}}).flat()[key]


@pytest.mark.parametrize(("changes", "line"), VALUES + TOGETHER + PRETRAINING, ids=case_name)
def test_a_wrong_setting_is_refused_in_one_line(changes, line):
    with pytest.raises(SettingsError) as error:
        RunConfig(**(ALL | changes))
    assert re.search(line, str(error.value))
    assert "\n" not in str(error.value)
    assert error.value.status == 2


def stored(**changes):
    """Return a configuration as JSON, with some settings changed."""
    return json.loads(json.dumps(RunConfig(**ALL).to_json() | changes))


@pytest.mark.parametrize(("changes", "line"), VALUES, ids=case_name)
def test_a_stored_setting_is_checked_as_one_made_in_python(changes, line):
    with pytest.raises(UserError) as error:
        RunConfig.from_json(stored(**changes))
    assert re.search(line, str(error.value))
    assert "\n" not in str(error.value)
    assert error.value.status == 1, "a file is no command line"


@pytest.mark.parametrize("changes", [changes for changes, _ in TOGETHER], ids=case_name)
def test_contradictions_of_stored_settings_are_not_refused_again(changes):
    """A finished run can be used; settings of methods that it does not have are dropped."""
    content = stored(**changes)
    if changes.get("preference") == (1, 2):
        content["preference"] = [1 / 3, 2 / 3]
    made = RunConfig.from_json(content).to_json()
    assert {key: made[key] for key in content if key in made} == {
        key: value for key, value in content.items() if key in made
    }
    left_out = content.keys() - made.keys()
    dropped = {"preference", "smart_radius", "smart_norm", "temperature", "scl_weight"}
    assert left_out <= dropped


def test_a_copy_with_a_frozen_encoder_may_keep_its_rate():
    copy = RunConfig(**SST, lr=1e-3, layer_decay=1.0).changed(freeze_encoder=True)
    assert (copy.freeze_encoder, copy.optimizer.lr) == (True, 1e-3)


@pytest.mark.parametrize("rate", [{"lr": 1e-3}, {"optimizer": AdamW(lr=1e-3)}])
def test_a_rate_of_a_frozen_encoder_is_refused_by_name_and_in_an_object(rate):
    with pytest.raises(SettingsError, match="freeze_encoder and lr: expected only head_lr"):
        RunConfig(**SST, freeze_encoder=True, **rate)
    RunConfig(**SST, freeze_encoder=True, optimizer=AdamW(head_lr=1e-3))


class Worded(TaskOptions, name="worded"):
    words: tuple[str, ...] = setting(("a",), help="words")

    def build(self):
        return build_task("sst")


def test_options_of_a_users_task_may_be_lists():
    config = RunConfig(tasks=(Worded(words=("b", "c")),), encoder="tiny")
    stored = RunConfig.from_json(config.to_json(), config.user_methods)
    for one in (config, stored):
        assert one.options_of("worded").words == ("b", "c")


def test_the_probe_of_a_pretrained_encoder_may_keep_the_settings_of_pretraining():
    before = RunConfig(tasks=("sst",), objective="superloss", keep="last", epochs=2)
    assert before.changed(mode="probe", objective=None).keep == "last"


def test_a_probe_may_be_a_changed_copy_of_a_run():
    before = RunConfig(tasks=("sst",), branch="top-1", class_weights="balanced")
    assert before.changed(mode="probe").branch == "top-1"


def test_a_run_of_one_task_may_have_settings_of_several():
    several = RunConfig(tasks=("sst", "sts"), sampling="annealed", batches_per_step=2)
    one = replace(several, tasks=("sst",), mode="single")
    assert (one.sampling.name, one.step_batches) == ("annealed", 2)


@pytest.mark.parametrize(
    ("base", "changes", "line"),
    [
        ({"freeze_encoder": True}, {"lr": 1e-3}, "freeze_encoder and lr"),
        (
            {"lr": 1e-3},
            {"freeze_encoder": True, "layer_decay": 0.9},
            "freeze_encoder and layer_decay",
        ),
        ({"mode": "pretrain", "objective": "simcse"}, {"head_lr": 1e-3}, "head_lr"),
    ],
)
def test_a_change_without_an_effect_is_refused(base, changes, line):
    config = RunConfig(**(SST | base))
    with pytest.raises(SettingsError, match=f"^{line}: expected"):
        config.changed(**changes)


@pytest.mark.parametrize("setting", ["teacher", "auxiliary", "branch_only"])
def test_a_string_in_place_of_a_list_is_refused(setting):
    line = f"{setting}: expected a list, such as ['sts'], found only the string"
    with pytest.raises(SettingsError, match=re.escape(line)):
        RunConfig(**SST, **{setting: "sts"})


def test_a_stored_configuration_takes_a_preset_as_the_one_that_was_stored():
    for made in (RunConfig(**SST), RunConfig(**SST, preset="bees", lr=1e-4, epochs=3)):
        stored = RunConfig.from_json(made.to_json())
        for changes in ({"preset": "bees"}, {"seed": 2}):
            assert stored.changed(**changes).to_json() == made.changed(**changes).to_json()
    plain = RunConfig.from_json(RunConfig(**SST).to_json())
    assert plain.changed(preset="bees").optimizer.lr == 2e-5


def test_an_incomplete_configuration_is_refused_before_a_folder_is_made(tmp_path):
    for config in (RunConfig(mode="", tasks=()), RunConfig(mode="single", tasks=())):
        with pytest.raises(SettingsError, match="expected one"):
            check_complete(config)
        with pytest.raises(SettingsError):
            complete(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path):
    config = RunConfig(**SST, data=str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="missing"):
        complete(config, tmp_path / "runs" / "one")
    assert not (tmp_path / "runs" / "one").exists()


def test_a_difference_within_a_mapping_is_named_alone():
    one = RunConfig(tasks=("sst", "sts"), limit={"sst": 10, "sts": 20})
    line = difference(one.to_json(), one.changed(limit={"sst": 10, "sts": 30}).to_json())
    assert line == "limit.sts is 30 there and 20 here"
    line = difference(one.to_json(), {**one.to_json(), "limit": {"sst": 10}})
    assert line == "limit is {'sst': 10} there and {'sst': 10, 'sts': 20} here"


def test_explicit_settings_override_the_preset_in_every_copy():
    given = {"lr": 3e-5, "scl_temperature": 0.7, "class_balanced": False, "warmup": 0.3}
    config = RunConfig(tasks=("sst",), encoder="tiny", preset="scl-moo", **given)
    for one in (config, replace(config, seed=3), config.changed(device="cpu")):
        assert {key: one.flat()[key] for key in given} == given
    plain = RunConfig(tasks=("sst",), encoder="tiny", preset="scl-moo", objective=None)
    assert plain.changed(device="cpu").objective is None


@pytest.mark.parametrize("given", ["smart", ("smart",)])
def test_regularizers_may_be_names(given):
    config = RunConfig(**ALL, regularizers=given, smart_weight={"sst": 1.0}, smart_steps=2)
    assert config == RunConfig(**ALL, regularizers=Smart({"sst": 1.0}, 2))


def test_methods_are_names_or_objects():
    named = RunConfig(
        **ALL, sampling="temperature", temperature=3, combiner="epo", preference=(1, 2, 1),
        smart_weight={"sst": 1.0}, smart_steps=2,
    )  # fmt: skip
    made = RunConfig(
        **ALL, sampling=Temperature(3), combiner=EPO((1, 2, 1)), regularizers=Smart({"sst": 1.0}, 2)
    )
    assert named == made
    assert named.combiner.preference == (0.25, 0.5, 0.25)
    assert named.sampling == Temperature(temperature=3.0)
    assert replace(named, smart_steps=3).regularizers == (Smart({"sst": 1.0}, 3),)
    assert replace(named, sampling="uniform").flat().keys() == named.flat().keys() - {
        "temperature",
        "size_cap",
    }
    assert replace(named, smart_weight={}).regularizers == ()


def test_objectives_are_those_of_the_tasks():
    for changes in (
        {},
        {"task_options": {"qqp": {"loss": "with-contrastive"}}},
        {"objective": "epo"},
    ):
        config = RunConfig(**(ALL | changes))
        built = {name: task.objectives for name, task in build_tasks(config).items()}
        assert objectives_of(config) == built


def test_paths_may_be_given_as_path_objects():
    config = RunConfig(tasks=("sst",), data=Path("data"), init=Path("runs/a"))
    assert config == RunConfig(tasks=("sst",), data="data", init="runs/a")
    taught = RunConfig(tasks=("sst",), teacher=(Path("runs/a"), "runs/b"))
    assert taught.teacher == ("runs/a", "runs/b")
    assert config.changed(encoder=Path("some/folder")).to_json()["encoder"] == "some/folder"
