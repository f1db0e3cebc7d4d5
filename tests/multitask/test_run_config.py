"""RunConfig: every value is checked when it is made, every contradiction is one line."""

import json
import math
import random
from dataclasses import fields, replace

import pytest

from minbert.errors import SettingsError
from multitask.combiners import COMBINERS
from multitask.config import (
    RunConfig,
    check_complete,
    check_settings,
    default_values,
    type_hints,
)
from multitask.errors import RunError
from multitask.rules import objectives_of
from multitask.run import complete
from multitask.values import CHOICES, EACH, NUMBERS, value_faults
from pretrain.run_tasks import tasks_of

ALL = {"mode": "multitask", "tasks": ("sst", "qqp", "sts"), "encoder": "tiny"}
SST = {"mode": "single", "tasks": ("sst",), "encoder": "tiny"}
WRONG = [  # each trained, hung or ended in a traceback before it was refused
    ({"precision": "fp8"}, "precision: expected one of fp32, bf16, found 'fp8'"),
    ({"lr": -1}, "lr: expected a number above 0 and at most 1000000, found -1"),
    ({"epochs": 0}, "epochs: expected a whole number from 1 to 1000000, found 0"),
    ({"schedule": "jiont"}, "schedule: expected one of joint, individual, first-then-joint, found"),
    ({"keep": "first"}, "keep: expected one of best, last, found 'first'"),
    ({"gradients": "heads"}, "gradients: expected one of parameters, representation, found"),
    ({"smart_norm": "l1"}, "smart_norm: expected one of inf, l2, found 'l1'"),
    ({"mode": "train"}, "mode: expected one of single, multitask, "),
    ({"limit": -5}, "limit: expected a whole number from 1 to 1000000, or a share above 0"),
    ({"limit": 0}, "limit: expected a whole number"),
    ({"limit": 1.5}, "limit: expected a whole number"),
    ({"limit": {"sst": 0}}, "limit: expected a whole number"),
    ({"limit": {"cola": 5}}, "limit: expected one of sst, qqp, sts, found 'cola'"),
    ({"warmup": 5}, "warmup: expected a number from 0 to 1, found 5"),
    ({"clip": -1}, "clip: expected a number above 0"),
    ({"freeze_encoder": "no"}, "freeze_encoder: expected True or False, found 'no'"),
    ({"tasks": ("sst", "sst")}, "tasks: expected each task once, found sst twice"),
    ({"tasks": "sst"}, "tasks: expected a sequence of names of tasks, found 'sst'"),
    ({"tasks": ("sst", "nope")}, "tasks: expected one of sst, "),
    ({"batch_size": -3}, "batch_size: expected a whole number from 1"),
    ({"batch_size": 2.5}, "batch_size: expected a whole number from 1"),
    ({"batches_per_step": -1}, "batches_per_step: expected a whole number from 1"),
    ({"steps_per_epoch": 0}, "steps_per_epoch: expected a whole number from 1"),
    ({"combiner": "typo"}, "combiner: expected one of sum, linear, pcgrad, "),
    (
        {"combiner": "epo", "preference": (1, 2)},
        "preference: expected 3 numbers, for sst, qqp, sts",
    ),
    ({"combiner": "epo", "preference": (1, 1, math.nan)}, "preference: expected a number from 0"),
    ({"combiner": "epo", "preference": (1, 1, 0)}, "preference: expected numbers above 0"),
    ({"combiner": "epo", "preference": (0.5, -1, 1.5)}, "preference: expected a number from 0"),
    ({"preference": (0.2, 0.3, 0.5)}, "preference: expected combiner linear or epo"),
    ({"smart_weight": {"sst": -1}}, "smart_weight: expected a number from 0"),
    ({"smart_weight": {"cola": 1}}, "smart_weight: expected one of sst, qqp, sts, found 'cola'"),
    ({"smart_weight": 1.0}, "smart_weight: expected a weight by task, found 1.0"),
    ({"smart_radius": 0.2}, "smart_radius: expected a smart_weight above 0"),
    ({"combiner": "pcgrad", "schedule": "individual"}, "combiner pcgrad: expected steps with two"),
    ({"combiner": "pcgrad", "batches_per_step": 1}, "combiner pcgrad: expected steps with two"),
    ({"combiner": "pcgrad", "tasks": ("sst",)}, "combiner pcgrad: expected two objectives"),
    ({"combiner": "pcgrad", "freeze_encoder": True}, "combiner pcgrad: expected a shared encoder"),
    ({"sampling": "hybrid", "epochs": 1}, "first_epochs: expected fewer than epochs 1, found 1"),
    ({"temperature": 2}, "temperature: expected sampling temperature"),
    ({"seed": -1}, "seed: expected a whole number from 0"),
    ({"seed": True}, "seed: expected a whole number from 0"),
    ({"device": "gpu"}, "device: expected auto, cpu, cuda or cuda:N, found 'gpu'"),
    ({"data": " "}, "data: expected a name, found ' '"),
    ({"objective": "simcse"}, "objective: expected mode pretrain for simcse"),
    ({"objective": "scl", "tasks": ("sts",)}, "objective scl: expected a task with classes"),
    ({"scl_weight": 0.5}, "scl_weight: expected objective scl"),
    ({"own_tasks": {"mine": {}}, "tasks": ("mine",)}, "mine"),
    ({"task_options": {"sst": {"head": "round"}}}, "task_options: sst: head: expected one of"),
    ({"task_options": {"sst": {"hat": "x"}}}, "task_options: sst: expected options of head"),
    ({"similarity_scale": 5.0, "tasks": ("sst",)}, "similarity_scale: expected a task of"),
    ({"protocol": "few-shot"}, "protocol few-shot: expected shots, found none"),
    ({"keep": "last", "patience": 2}, "keep last and patience: expected one of them"),
]


@pytest.mark.parametrize(("changes", "line"), WRONG, ids=lambda case: str(case)[:60])
def test_a_wrong_setting_is_refused_in_one_line(changes, line):
    with pytest.raises(SettingsError) as error:
        RunConfig(**(ALL | changes))
    assert line in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.status == 2


def test_a_stored_setting_is_checked_as_one_made_in_python():
    stored = json.loads(json.dumps(RunConfig(**ALL).to_json()))
    assert RunConfig.from_json(stored).to_json() == stored
    for changes, line in WRONG:
        written = {k: v for k, v in changes.items() if not isinstance(v, tuple)}
        if len(written) < len(changes):
            continue  # JSON has no tuples
        content = stored | json.loads(json.dumps(written))
        if next(value_faults(content, type_hints()), None) is None and "own_tasks" not in written:
            made = RunConfig.from_json(content)
            assert made.to_json() == content, "a run that was made can be used"
            continue
        with pytest.raises(RunError) as error:
            RunConfig.from_json(content)
        assert line in str(error.value)
        assert error.value.status == 1, "a file is no command line"


def test_what_is_missing_is_refused_before_a_folder_is_made(tmp_path):
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


def wrong_values(draw):
    """A random setting and a value that it cannot have."""
    junk = [
        "",
        "x\n",
        "🙂" * 200,
        b"x",
        -1,
        math.nan,
        math.inf,
        [],
        {},
        object(),
        (None,),
        -0.5,
        1e99,
    ]
    hint = {one.name: one.default for one in fields(RunConfig)}
    name = draw.choice([*NUMBERS, *CHOICES, *EACH, "limit", "tasks", "own_tasks", "task_options"])
    value = draw.choice(junk)
    if value == hint.get(name) or (name in ("own_tasks", "task_options", *EACH) and value == {}):
        value = object()
    return name, value


def test_two_hundred_random_wrong_settings_are_each_refused_in_one_line():
    draw = random.Random(0)
    for _ in range(200):
        name, value = wrong_values(draw)
        if name == "mode" and value == "":
            continue  # a configuration that others are made from: `complete` refuses it
        if name in ("weight_decay", "tasks") and value in ([], ()):
            continue
        with pytest.raises(ValueError, match="expected") as error:
            RunConfig(**(ALL | {name: value}))
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 1500


TEXT = {"objective": "simcse", "tasks": (), "text": "lines.txt"}
PRETRAINING = {"mode": "pretrain", "encoder": "tiny"}


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"objective": "supcon", "tasks": ("sts",)},
            "supcon: expected tasks with classes",
        ),
        ({"objective": "superloss", "tasks": ("qqp",)}, "superloss: expected single texts or pair"),
        (
            {"objective": "pairs", "tasks": ("sst",)},
            "tasks: expected qqp or sts with",
        ),
        (
            {"objective": "simcse", "tasks": ("sst",), "protocol": "held-out"},
            "protocol: expected",
        ),
        (
            {"objective": "simcse", "tasks": ("sst",), "combiner": "pcgrad"},
            "combiner: expected sum",
        ),
        (
            {"objective": "simcse", "tasks": ("sst",), "sampling": "annealed"},
            "sampling: expected",
        ),
        (
            {"objective": "simcse", "tasks": (), "text": "f.txt", "limit": {"sst": 3}},
            "limit: expected",
        ),
        ({**TEXT, "first_task": "x"}, "first_task: expected sampling hybrid"),
        ({**TEXT, "smart_radius": 0.3}, "smart_radius: expected a smart_weight above 0"),
        ({**TEXT, "task_options": {"zz": {}}}, "task_options: expected"),
        ({**TEXT, "similarity_scale": 5.0}, "similarity_scale: expected"),
        ({"objective": "nli", "tasks": ()}, "nli: expected a file with objective nli, found none"),
    ],
)
def test_wrong_settings_of_pretraining_are_refused(settings, line):
    with pytest.raises(SettingsError) as error:
        RunConfig(**(PRETRAINING | settings))
    assert line in str(error.value)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"task_options": {"qqp": {"pair": "joint", "loss": "with-contrastive"}}}, "pair joint"),
        ({"objective": "leam"}, "objective leam: expected single texts or pair joint, found qqp"),
        ({"objective": "ls", "scl_preference": (0.9, 0.9)}, "scl_preference: expected two numbers"),
        (
            {"objective": "lacon", "label_terms": ("lcl",), "batch_size": 1},
            "batch_size: expected 2",
        ),
        ({"objective": "lacon", "label_terms": ("icl",), "label_spread": 0.7}, "label_spread: exp"),
        ({"loss_sizes": (1.0, 2.0, 3.0)}, "loss_sizes: expected mode pareto"),
    ],
)
def test_settings_that_mean_nothing_together_are_refused(settings, line):
    with pytest.raises(SettingsError) as error:
        RunConfig(**(ALL | settings))
    assert line in str(error.value)


def test_a_run_of_an_older_version_had_its_noise_on_the_words():
    """Before `smart_place` the noise was added there, and radius and step were no shares."""
    now = RunConfig(**ALL, smart_weight={"sst": 1.0}, smart_variant="projected", smart_radius=0.2)
    stored = {k: v for k, v in now.to_json().items() if k != "smart_place"}
    before = RunConfig.from_json(stored)
    assert (before.smart_place, before.smart_radius) == ("words", None)
    assert "smart_place is 'words' there and 'embeddings' here" in str(now.difference(stored))
    plain = RunConfig(**ALL)
    assert (
        plain.difference({k: v for k, v in plain.to_json().items() if k != "smart_place"}) is None
    )


def outcome(changes):
    """What becomes of a configuration: the line that refuses it, or the tasks that it builds."""
    try:
        config = RunConfig(**(ALL | changes))
        check_complete(config)
    except ValueError as error:
        return str(error)
    return tasks_of(config)


def test_two_hundred_random_pairs_of_settings_are_refused_or_built():
    """Values that each setting may have: together they are refused in a line, or make tasks."""
    draw = random.Random(1)
    for _ in range(200):
        changes = {}
        for name in draw.sample([*NUMBERS, *CHOICES, *EACH], 2):
            if name in CHOICES:
                changes[name] = draw.choice(CHOICES[name])
            elif name in EACH:
                weights = {"sst": 1.0} if name.endswith("_weight") else (0.2, 0.3, 0.5)
                changes[name] = weights
            else:
                top = min(NUMBERS[name].high, 5)
                changes[name] = draw.randint(1, int(top)) if NUMBERS[name].whole else 0.5
        found = outcome(changes)
        assert found
        assert isinstance(found, dict) or "expected" in found


def test_batches_per_step_are_as_many_as_there_are_tasks():
    config = RunConfig(**ALL)
    assert (config.step_batches, config.to_json()["batches_per_step"]) == (3, 3)
    assert replace(config, tasks=("sst", "sts")).step_batches == 2
    assert replace(config, schedule="individual").step_batches == 1
    assert replace(config, batches_per_step=5).step_batches == 5


def test_a_preference_is_brought_to_a_sum_of_one():
    config = RunConfig(**ALL, combiner="epo", preference=[1, 2, 1])
    assert config.preference == (0.25, 0.5, 0.25)


def test_objectives_are_those_of_the_tasks():
    from multitask.assembly import build_tasks

    for changes in (
        {},
        {"task_options": {"qqp": {"loss": "with-contrastive"}}},
        {"objective": "epo"},
    ):
        config = RunConfig(**(ALL | changes))
        built = {name: task.objectives for name, task in build_tasks(config).items()}
        assert objectives_of(config) == built


@pytest.mark.parametrize("combiner", [name for name in COMBINERS if name != "sum"])
def test_every_combiner_that_meets_several_tasks_is_accepted(combiner):
    assert RunConfig(**ALL, combiner=combiner).combiner == combiner


def test_stored_configurations_of_other_forms_are_refused():
    for content in ({"lr": "fast"}, {"tasks": ["nope"]}, {"own_tasks": 3}):
        with pytest.raises(RunError):
            check_settings({"mode": "single", "tasks": ["sst"]} | content)
    check_settings(default_values() | {"mode": "ensemble", "members": ["a"]})
