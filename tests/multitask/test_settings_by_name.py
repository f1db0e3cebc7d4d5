"""Settings by name and the parts of a configuration: one form from the other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from common.errors import SettingsError
from multitask.combiners import Combiner, PCGrad
from multitask.optimizer import AdamW, Constant
from multitask.regularizers import Distillation, Smart
from multitask.sampling import Annealed, Temperature
from multitask.settings.config import RunConfig, difference
from multitask.settings.methods import ROLES, methods
from multitask.settings.presets import PRESETS
from tasks.own_tasks import task
from tasks.registry import SST

ROOT = Path(__file__).parents[2]
TASKS = {"tasks": ("sst", "qqp", "sts"), "encoder": "tiny"}
PAIRED = {"task_options": {"qqp": {"pair": "joint"}}, "tasks": ("sst", "qqp")}
NEEDED = {  # what a method is used with
    **{
        ("protocol", n): {"tasks": ("sst",), "shots": 20}
        for n in ("few-shot", "capped", "few-a-class")
    },
    ("protocol", "imbalanced"): {"tasks": ("sst",), "shots": 20, "imbalance": 2.0},
    ("objective", "leam"): PAIRED,
    ("objective", "lsan"): PAIRED,
    ("objective", "nli"): {"tasks": (), "nli": "nli.csv"},
    **{
        ("objective", name): {"tasks": ("qqp", "sts") if one.of_pairs else ("sst",)}
        for name, one in methods("objective").items()
        if getattr(one, "of_pairs", False) or getattr(one, "of_classes", False)
    },
    **{
        ("projection_head", n): {"tasks": ("sst",), "objective": "supcon"}
        for n in ("none", "linear", "nonlinear")
    },
}
METHODS = [
    (role, name)
    for role in ROLES
    if role not in ("tasks", "regularizers")
    for name in methods(role)
]


@pytest.mark.parametrize(("role", "name"), METHODS)
def test_a_method_by_name_equals_the_object_and_is_restored_from_json(role, name):
    further = {**TASKS, **NEEDED.get((role, name), {})}
    named = RunConfig(**{**further, role: name})
    method = getattr(named, role)
    assert method.name == name
    assert RunConfig(**{**further, role: method}) == named
    assert named.flat()[role] == name
    assert named.changed(seed=named.seed) == named
    again = RunConfig.from_json(named.to_json())
    assert again.to_json() == named.to_json()
    assert again.digest() == named.digest()
    assert difference(named.to_json(), again.to_json()) is None


def test_the_similarity_scale_depends_on_the_tasks():
    assert RunConfig(tasks=("sst", "sts")).similarity_scale == 5
    assert RunConfig(tasks=("sst",)).similarity_scale == 1
    assert RunConfig(tasks=("sst",)).changed(tasks=("sts",)).similarity_scale == 5
    assert RunConfig(tasks=("sts",), objective="simcse").similarity_scale == 1


def test_a_changed_configuration_keeps_the_settings_of_its_methods():
    before = RunConfig(tasks=("sst",), objective="simcse", lr=1e-3)
    assert before.optimizer == AdamW(lr=1e-3)
    assert before.changed(device="cpu").optimizer == AdamW(lr=1e-3)
    assert before.changed(lr=2e-3).optimizer == AdamW(lr=2e-3)
    paper = RunConfig(tasks=("sst", "sts"), preset="bees", lr=3e-5)
    assert paper.changed(seed=2).optimizer == AdamW(lr=3e-5, head_lr=2e-5)
    assert paper.changed(seed=2).lr_schedule == Constant(warmup=0.0)


def test_settings_of_an_object_may_be_changed_by_name():
    config = RunConfig(**TASKS, sampling=Temperature(temperature=3, size_cap=10))
    assert config.changed(temperature=4).sampling == Temperature(temperature=4, size_cap=10)
    with pytest.raises(SettingsError, match="temperature: expected sampling temperature, found 4"):
        config.changed(sampling="annealed", temperature=4)


def test_a_weight_of_a_regulariser_is_for_all_tasks_or_by_task():
    both = RunConfig(**TASKS, smart_weight=1)
    assert both.regularizers[0].weights == {"sst": 1.0, "qqp": 1.0, "sts": 1.0}
    one = RunConfig(**TASKS, smart_weight={"sts": 2, "sst": 0})
    assert one.regularizers[0].weights == {"sts": 2.0}
    assert RunConfig(**TASKS, smart_weight={"sst": 0}).regularizers == ()
    with pytest.raises(SettingsError, match="smart_steps: expected a smart_weight above 0"):
        RunConfig(**TASKS, smart_steps=2)


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
    tasks = {"tasks": ("sst",), "preset": name}
    modes = ("pretrain",) if "pretrain" in PRESETS[name].by_mode else ("single",)
    for mode in modes:
        config = RunConfig(mode=mode, **tasks)
        flat = config.flat()
        for key, (value, source) in PRESETS[name].of_mode(mode).items():
            assert flat[key] == value, key
            assert source
        assert config.changed(seed=config.seed) == config
        assert RunConfig(mode=mode, lr=5e-4, **tasks).optimizer.lr == 5e-4


def test_an_unknown_name_is_refused_with_a_suggestion():
    with pytest.raises(SettingsError, match=r"preset: expected one of bees, .*did you mean bees"):
        RunConfig(tasks=("sst",), preset="beess")
    with pytest.raises(SettingsError, match="found 'epoch'; did you mean epochs"):
        RunConfig(tasks=("sst",), epoch=3)
    with pytest.raises(SettingsError, match="found 'pcgard'; did you mean pcgrad"):
        RunConfig(**TASKS, combiner="pcgard")


def test_a_configuration_copies_lists():
    tasks = ["sst", "sts"]
    config = RunConfig(tasks=tasks)
    tasks.append("qqp")
    assert config.changed(seed=1).tasks == ("sst", "sts")


def test_a_changed_configuration_computes_its_defaults_again():
    made = RunConfig(tasks=("sst", "qqp"), smart_weight=1.0)
    for config in (made, RunConfig.from_json(made.to_json())):
        more = config.changed(tasks=("sst", "qqp", "sts"), smart_weight=2.0)
        assert (more.similarity_scale, more.step_batches) == (5, 3)
        one = config.changed(tasks=("sst",), smart_weight=0)
        assert (one.mode, one.step_batches) == ("single", 1)
        assert config.changed(schedule="individual").step_batches == 1
    balanced = RunConfig(tasks=("sst",), objective="supcon")
    assert balanced.class_balanced
    assert not balanced.changed(objective=None).class_balanced
    drawn = RunConfig(**TASKS, sampling="temperature", temperature=3)
    assert drawn.changed(sampling="annealed").flat().get("temperature") is None


def test_other_tasks_leave_out_options_of_the_tasks_before():
    softmax = SST(head="softmax")
    made = RunConfig(tasks=(softmax, "sts"), smart_weight=1.0)
    stored = RunConfig.from_json(made.to_json())
    for config in (made, stored):
        assert config.changed(tasks=("sts",)).task_options == {}
        again = config.changed(tasks=(softmax, "sts"))
        assert again.task_options == {"sst": {"head": "softmax"}}
        more = config.changed(tasks=("sst", "qqp", "sts"))
        assert more.flat()["smart_weight"] == dict.fromkeys(("sst", "qqp", "sts"), 1.0)
    assert stored.changed(tasks=("sst", "sts")).task_options == {"sst": {"head": "softmax"}}
    only = RunConfig(tasks=("sst", "sts"), smart_weight={"sst": 1.0})
    for config in (only, RunConfig.from_json(only.to_json())):
        assert config.changed(tasks=("sst", "qqp")).flat()["smart_weight"] == {"sst": 1.0}


def test_methods_of_two_roles_with_one_setting_must_agree_in_it():
    class Warm(Combiner, name="warm"):
        temperature: float = 3

    drawn = Temperature(temperature=2)
    line = "temperature: expected one value for sampling and combiner, which both have this"
    with pytest.raises(SettingsError, match=line):
        RunConfig(**TASKS, sampling=drawn, combiner=Warm(temperature=7))
    both = RunConfig(**TASKS, sampling=drawn, combiner=Warm(temperature=2))
    assert both.flat()["temperature"] == 2


def test_a_setting_of_a_method_must_have_a_unique_name():
    class Longer(Combiner, name="longer"):
        epochs: int = 2

    with pytest.raises(SettingsError, match="epochs: expected another name for this setting"):
        RunConfig(**TASKS, combiner=Longer())

    class Used(Combiner, name="used"):
        use: str = "a"

    with pytest.raises(SettingsError, match="use: expected another name for this setting"):
        RunConfig(**TASKS, combiner=Used())
    with pytest.raises(SettingsError, match="values: expected another name"):

        class Wrong(Combiner, name="wrong"):
            values: int = 2


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"smart_radius": np.array([1, 2])}, "smart_radius: expected a smart_weight above 0"),
        ({"mode": np.array(["single"])}, "mode: expected one of single"),
        ({"objective": np.array([1, 2])}, "objective: expected one of ce, scl"),
        ({"limit": range(3)}, "limit: expected a whole number"),
        ({"label_terms": {"icl"}, "objective": "lacon"}, "found a set, which has no order"),
        ({"tasks": (SST,)}, "tasks: expected names or objects, found class SST"),
        # Settings without an effect:
        ({"regularizers": (Smart(steps=3),)}, "smart_weight: expected a number above 0"),
        (
            {"preset": "bees", "optimizer": AdamW(weight_decay=0.1)},
            "lr: expected it to be set beside the object, found 0.0001 in the object of optimizer "
            "and 2e-05",
        ),
        (
            {"tasks": (SST(head="softmax"),), "task_options": {"sst": {"head": "hidden"}}},
            "task_options and the object of sst: expected at most one of them",
        ),
        ({"objective": "leam", "pooling": "max"}, "pooling: expected another objective"),
        ({"objective": "simcse", "head_lr": 1e-2}, "head_lr: expected setting projection"),
    ],
)
def test_wrong_values_and_settings_without_effect_are_refused_in_one_line(settings, expected):
    with pytest.raises(SettingsError, match=expected):
        RunConfig(**{"tasks": ("sst",), **settings})


def test_objects_of_the_packages_equal_methods_by_name():
    by_name = RunConfig(tasks=("sst", "sts"), combiner="pcgrad", sampling="annealed")
    assert by_name == RunConfig(tasks=("sst", "sts"), combiner=PCGrad(), sampling=Annealed())


def test_settings_that_a_preset_has_may_be_given_beside_an_object():
    settings = {"optimizer": AdamW(weight_decay=0.1), "lr": 1e-4, "head_lr": 1e-4}
    found = RunConfig(tasks=("sst",), preset="bees", **settings).optimizer
    assert (found.lr, found.weight_decay) == (1e-4, 0.1)


def test_an_object_of_distillation_keeps_its_weight():
    weights = [
        [one.weight for one in RunConfig(tasks=("sst",), teacher=("run",), **given).regularizers]
        for given in ({}, {"regularizers": (Distillation(weight=0.5),)})
    ]
    assert weights == [[{"sst": 1.0}], [{"sst": 0.5}]]
    config = RunConfig(tasks=("sst",), teacher=("run",), distillation_weight=0.5)
    assert replace(config, seed=2).regularizers == config.regularizers


def test_an_option_of_a_task_given_as_a_setting_is_explained():
    with pytest.raises(SettingsError) as caught:
        RunConfig(tasks=("sst",), sst_head="softmax")
    assert str(caught.value).endswith(
        "found 'sst_head'; an option of a task: task('sst', head=...)"
    )


def test_two_tasks_from_lists_need_names(tmp_path):
    texts, labels = [f"text {n}" for n in range(6)], ["a", "b"] * 3
    both = [task(texts[:k], labels[:k], folder=tmp_path) for k in (6, 4)]
    with pytest.raises(SettingsError, match=r"task\(..., name=...\) gives a task another name"):
        RunConfig(tasks=tuple(both))
