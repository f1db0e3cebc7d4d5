"""Settings by name and the parts of a configuration: one form from the other."""

import numpy as np
import pytest

from common.errors import SettingsError
from common.settings import default_of, required
from multitask.combiners import Combiner
from multitask.config import RunConfig, default_values, difference
from multitask.methods import ROLES, methods
from multitask.optimizer import AdamW, Constant
from multitask.presets import PRESETS
from multitask.sampling import Temperature
from tasks.registry import SST

TASKS = {"tasks": ("sst", "qqp", "sts"), "encoder": "tiny"}
PAIRED = {"task_options": {"qqp": {"pair": "joint"}}, "tasks": ("sst", "qqp")}
NEEDED = {  # what a method is used with
    ("protocol", "few-shot"): {"tasks": ("sst",), "shots": 20},
    ("protocol", "capped"): {"tasks": ("sst",), "shots": 20},
    ("protocol", "few-a-class"): {"tasks": ("sst",), "shots": 20},
    ("protocol", "imbalanced"): {"tasks": ("sst",), "shots": 20, "imbalance": 2.0},
    ("objective", "leam"): PAIRED,
    ("objective", "lsan"): PAIRED,
    ("objective", "nli"): {"tasks": (), "nli": "nli.csv"},
    **{("objective", n): {"tasks": ("qqp", "sts")} for n in ("pairs", "ranking", "triplet")},
    **{
        ("objective", n): {"tasks": ("sst",)}
        for n in ("superloss", "supcon", "class-triplet", "npair")
    },
    **{("projection_head", n): {"tasks": ("sst",), "objective": "supcon"} for n in ("none",)},
    ("projection_head", "linear"): {"tasks": ("sst",), "objective": "supcon"},
    ("projection_head", "nonlinear"): {"tasks": ("sst",), "objective": "supcon"},
}
METHODS = [
    (role, name)
    for role in ROLES
    if role not in ("tasks", "regularizers")
    for name in methods(role)
]
# Made by the version before methods were objects, for the same settings.
DIGESTS = [
    ("3a23f05f", {"mode": "multitask", "sampling": "annealed", "combiner": "pcgrad"}),
    (
        "9680effa",
        {
            **{"mode": "single", "tasks": ("sts",), "smart_weight": {"sts": 1.0}},
            **{"smart_variant": "projected", "smart_steps": 2, "lr": 2e-5, "head_lr": 2e-5},
        },
    ),
    (
        "2cb803a7",
        {
            **{"mode": "multitask", "tasks": ("sst", "sts"), "combiner": "epo"},
            **{"preference": (0.3, 0.7), "sampling": "temperature"},
            **{"temperature": 2.0, "size_cap": 100},
        },
    ),
    (
        "729038e7",
        {
            **{"mode": "multitask", "tasks": ("sst", "sts"), "combiner": "pareto-mtl"},
            **{"preference": (0.5, 0.5), "cones": 7, "schedule": "first-then-joint"},
            **{"first_task": "sts", "epochs": 4, "first_epochs": 2},
        },
    ),
    (
        "983249e1",
        {
            **{"mode": "single", "tasks": ("sst",), "objective": "scl"},
            **{"scl_weight": 0.5, "per_class": True},
        },
    ),
    (
        "4751de7b",
        {
            **{"mode": "single", "tasks": ("sst",), "objective": "epo"},
            **{"scl_preference": (0.4, 0.6), "gradients": "representation"},
        },
    ),
    (
        "c07138dc",
        {
            **{"mode": "single", "tasks": ("sst",), "objective": "lacon"},
            **{"label_terms": ("icl", "lcl"), "label_heads": 4, "projection_layers": 2},
        },
    ),
    (
        "f4ce9605",
        {
            **{"mode": "pretrain", "tasks": ("sst", "sts"), "objective": "simcse"},
            "projection": True,
        },
    ),
    (
        "d9d7fb82",
        {
            **{"mode": "pretrain", "tasks": ("sst",), "objective": "superloss", "epochs": 2},
            **{"hard_top_k": 5, "hard_after": 1, "projection_head": "nonlinear"},
        },
    ),
    (
        "55c2ea45",
        {
            **{"mode": "single", "tasks": ("rte",), "task_options": {"rte": {"pair": "joint"}}},
            **{"protocol": "few-shot", "shots": 20, "drop_leaks": True, "leaks_of": "own"},
        },
    ),
    (
        "d5e34582",
        {
            **{"mode": "single", "tasks": ("qqp",), "proximal_weight": {"qqp": 1.0}},
            **{"r_drop_weight": {"qqp": 0.5}, "weight_decay": 0.1, "warmup": 0.3, "limit": 0.25},
        },
    ),
    (
        "b5d18bd5",
        {
            **{"mode": "multitask", "limit": {"qqp": 100}, "sampling": "hybrid"},
            **{"precision": "bf16", "select_by": "accuracy", "patience": 2},
            "similarity_scale": 5.0,
        },
    ),
]


@pytest.mark.parametrize(("role", "name"), METHODS)
def test_a_name_is_the_object_and_comes_back_from_json(role, name):
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


@pytest.mark.parametrize(("digest", "settings"), DIGESTS)
def test_runs_keep_the_names_that_the_version_before_gave_them(digest, settings):
    given = {"tasks": ("sst", "qqp", "sts"), **settings}
    if "sts" in given["tasks"] and given["mode"] != "pretrain":
        given = {"similarity_scale": 1.0, **given}  # the default of that version
    assert RunConfig(**given).digest() == digest


def test_a_run_without_similarities_has_no_scale_of_them():
    assert RunConfig(tasks=("sst", "sts")).similarity_scale == 5
    assert RunConfig(tasks=("sst",)).similarity_scale == 1
    assert RunConfig(tasks=("sst",)).changed(tasks=("sts",)).similarity_scale == 5
    assert RunConfig(tasks=("sts",), objective="simcse").similarity_scale == 1


def test_a_run_of_an_older_version_keeps_its_scale_of_similarities():
    older = RunConfig(tasks=("sts",)).to_json()
    del older["similarity_scale"]
    assert RunConfig.from_json(older).similarity_scale == 1
    assert "similarity_scale is 1.0 there" in RunConfig(tasks=("sts",)).difference(older)


def test_a_changed_configuration_keeps_the_settings_of_its_methods():
    before = RunConfig(tasks=("sst",), objective="simcse", lr=1e-3)
    assert before.optimizer == AdamW(lr=1e-3)
    assert before.changed(linear="mkl").optimizer == AdamW(lr=1e-3)
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


def test_an_unknown_preset_is_refused():
    with pytest.raises(SettingsError, match=r"preset: expected one of bees, .*did you mean bees"):
        RunConfig(tasks=("sst",), preset="beess")


def test_every_setting_of_a_method_has_a_default_and_a_help():
    for role in ROLES:
        if role == "tasks":
            continue
        for method in methods(role).values():
            assert not list(required(method)), method
            for key, one in method.by_key().items():
                assert one.metadata.get("help"), key
                assert key in default_values() or default_of(one) is None


def test_what_is_no_setting_is_refused_with_the_one_that_is_meant():
    with pytest.raises(SettingsError, match="found 'epoch'; did you mean epochs"):
        RunConfig(tasks=("sst",), epoch=3)
    with pytest.raises(SettingsError, match="found 'pcgard'; did you mean pcgrad"):
        RunConfig(**TASKS, combiner="pcgard")


def test_a_configuration_keeps_no_list_of_its_maker():
    tasks = ["sst", "sts"]
    config = RunConfig(tasks=tasks)
    tasks.append("qqp")
    assert config.changed(seed=1).tasks == ("sst", "sts")


def test_a_changed_configuration_takes_its_defaults_anew():
    made = RunConfig(tasks=("sst", "qqp"), smart_weight=1.0)
    for config in (made, RunConfig.from_json(made.to_json())):
        more = config.changed(tasks=("sst", "qqp", "sts"), smart_weight=2.0)
        assert (more.similarity_scale, more.step_batches) == (5, 3)
        one = config.changed(tasks=("sst",), smart_weight=0)
        assert (one.mode, one.step_batches) == ("single", 1)
        assert config.changed(schedule="individual").step_batches == 1
    balanced = RunConfig(tasks=("sst",), objective="supcon")
    assert balanced.per_class
    assert not balanced.changed(objective=None).per_class
    drawn = RunConfig(**TASKS, sampling="temperature", temperature=3)
    assert drawn.changed(sampling="annealed").flat().get("temperature") is None


def test_a_setting_has_a_name_of_its_own():
    class Longer(Combiner, name="longer"):
        epochs: int = 2

    with pytest.raises(SettingsError, match="epochs: expected another name for this setting"):
        RunConfig(**TASKS, combiner=Longer())
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
    ],
)
def test_values_of_other_types_are_refused_in_one_line(settings, expected):
    with pytest.raises(SettingsError, match=expected):
        RunConfig(**{"tasks": ("sst",), **settings})
