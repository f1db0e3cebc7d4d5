"""Advice from estimated affinities: groups, settings with their reasons, stored files."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from common.errors import RunError, SettingsError
from multitask import RunConfig, advise, measure_affinity
from multitask.affinity.advisor import advice_faults
from multitask.affinity.measures import Measures
from multitask.affinity.proposals import Proposals, for_tasks, on_all_data
from multitask.affinity.result import Promise, affinity_of
from multitask.regularizers import Distillation, Smart

TASKS = ("sst", "sts", "qqp")
CONFIG = RunConfig(
    tasks=TASKS, encoder="tiny", limit=24, dev_limit=10, test_limit=10, epochs=2, batch_size=4
)
SIZES = {"sst": 1000, "sts": 1050, "qqp": 4000}
pytestmark = pytest.mark.usefixtures("quick_intervals")


def measures(cosines, rounds=6):
    """Return measures with these cosines of unit gradients."""
    tasks = len(cosines)
    grams = np.broadcast_to(np.array(cosines, float), (rounds, 1, tasks, tasks)).copy()
    sketches = np.random.default_rng(0).normal(size=(rounds, tasks, 8)).astype(np.float32)
    return Measures(np.ones((rounds, tasks)), grams, sketches, ("layer 1",), 1.0)


@pytest.fixture
def proposals(monkeypatch):
    """Return a function of look-ahead effects, and of cosines that need not fit, to proposals."""

    monkeypatch.setattr("multitask.affinity.proposals.is_bilstm", lambda run: False)
    monkeypatch.setattr("multitask.conflict_layers.parameter_ratio", lambda config, layers: 1.2)

    def make(effects, cosines=UNRELATED):
        tasks = TASKS[: len(effects)]
        cosines = np.array(cosines)[: len(tasks), : len(tasks)]
        given = np.array(effects, float)[None].repeat(6, 0)
        monkeypatch.setattr("multitask.affinity.estimators.look_ahead", lambda *_: given)
        found = affinity_of(tasks, [measures(cosines)], [1], "lookahead", 3, 1.0)
        return Proposals(found, on_all_data(CONFIG), SIZES, 100.0, Path("joint"))

    return make


FRIENDS = [[0, 0.1, -0.1], [0.1, 0, -0.1], [-0.1, -0.1, 0]]  # sst and sts help each other
UNRELATED = np.eye(3).tolist()
CONFLICT = [[1, -0.3, 0], [-0.3, 1, 0], [0, 0, 1]]


def test_tasks_that_help_each_other_form_a_group_beside_singles_and_one_model(proposals):
    advice = proposals(FRIENDS).advice((1, 2))
    assert [one.name for one in advice.systems] == ["singles", "one model", "groups"]
    assert [run.name for run in advice.systems[2].runs] == ["sst+sts", "qqp"]
    assert (advice.best, advice.seeds) == ("groups", (1, 2))
    assert len(advice.runs) == 3 + 1 + 1  # qqp alone is in two systems
    promises = advice.systems[2].promises
    assert promises.keys() == {"sst", "sts"}
    assert promises["sst"].gain == pytest.approx(0.1, rel=1e-12)
    assert promises["sst"].sign == 1
    mixed = advice.systems[1].promises["qqp"]
    assert (mixed.gain, mixed.sign) == (pytest.approx(-0.1, rel=1e-12), -1)


def test_tasks_that_hurt_each_other_are_trained_apart(proposals):
    advice = proposals([[0, -0.1, -0.1], [-0.1, 0, -0.1], [-0.1, -0.1, 0]]).advice((1,))
    assert [one.name for one in advice.systems] == ["singles", "one model"]
    assert advice.best == "singles"


def test_a_task_that_only_helps_is_auxiliary(proposals):
    advice = proposals([[0, 0.2, 0], [-0.2, 0, 0], [0, 0, 0]]).advice((1,))  # sst helps sts only
    run = next(one for one in advice.runs if one.name == "sst+sts-for-sts")
    assert run.config.auxiliary == ("sst",)
    assert run.config.main_tasks == ("sts",)


def test_settings_follow_sizes_and_conflicts(proposals):
    def chosen(one, *tasks):
        return {choice.setting: choice.value for choice in one.choices(tasks)}

    free, conflict = proposals(FRIENDS), proposals(FRIENDS, CONFLICT)
    assert chosen(free, "sst", "sts") == {
        "sampling": "round-robin",
        "schedule": "joint",
        "combiner": "sum",
    }
    assert chosen(free, "sst", "qqp") == {
        "sampling": "annealed",
        "schedule": "individual",
        "combiner": "sum",
    }
    assert chosen(conflict, "sst", "sts", "qqp") == {
        "sampling": "annealed",
        "schedule": "joint",
        "combiner": "pcgrad",
    }
    assert chosen(free, "sst") == {}
    reasons = [one.reason for one in conflict.choices(("sst", "sts", "qqp"))]
    assert reasons[0] == "qqp has 4.00 times the training examples of sst"
    assert "-0.300 (-0.300 to -0.300) of sst and sts" in reasons[2]


def test_a_task_that_only_one_of_two_helps_still_has_a_group(proposals):
    advice = proposals([[0, 0.2], [-0.1, 0]]).advice((1,))  # sst helps sts, which hurts sst
    assert advice.best == "groups"
    assert [run.name for run in advice.systems[-1].runs] == ["sst", "sst+sts-for-sts"]


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"combiner": "mgda"}, "combiner: expected its default, .* found mgda"),
        ({"adapter": "lora"}, "adapter: expected its default, .* found lora"),
        ({"batches_per_step": 2}, "batches_per_step: expected its default, .* found 2"),
        ({"auxiliary": ("qqp",)}, "auxiliary: expected its default"),
    ],
)
def test_settings_that_the_advice_chooses_are_refused(proposals, settings, found, tmp_path):
    with pytest.raises(SettingsError, match=found):
        advise(proposals(FRIENDS).found, CONFIG.changed(**settings), tmp_path)
    assert not list(tmp_path.iterdir())


def test_stored_settings_with_default_methods_are_accepted(proposals):
    stored = RunConfig.from_json(CONFIG.to_json())  # as from the file of a run
    assert list(advice_faults(stored, 4)) == []
    one = proposals(FRIENDS)
    advice = Proposals(one.found, on_all_data(stored), SIZES, 100.0, Path("joint")).advice((1,))
    plain = {run.name: run.config.to_json() for run in one.advice((1,)).runs}
    assert {run.name: run.config.to_json() for run in advice.runs} == plain


def test_layers_in_conflict_become_branches_from_the_joint_run(proposals, monkeypatch):
    advice = proposals(FRIENDS, CONFLICT).advice((1,))
    branches = advice.systems[-1]
    assert branches.name == "branches"
    run = branches.runs[0]
    assert (run.name, run.config.init) == ("sst+sts-branches", "joint")
    assert (run.config.adapter.name, run.config.adapter.layers) == ("copies", (1,))
    assert branches.promises == {}
    (choice,) = (one for one in advice.choices if one.setting == "branch")
    assert choice.value == "1"
    assert "layer 1: mean cosine -0.300 (-0.300 to -0.300) of sst and sts" in choice.reason
    assert [one.name for one in proposals(FRIENDS).advice((1,)).systems][-1] == "groups"
    monkeypatch.setattr("multitask.affinity.proposals.is_bilstm", lambda run: True)
    assert proposals(FRIENDS, CONFLICT).advice((1,)).systems[-1].name == "groups"


def test_long_names_of_tasks_give_short_names_of_runs(proposals, monkeypatch):
    monkeypatch.setattr("multitask.affinity.proposals.LONGEST_NAME", 8)
    names = [run.name for run in proposals(FRIENDS).advice((1,)).runs]
    assert names[:3] == [*TASKS]
    assert names[3].startswith("3-tasks-")
    assert names[4] == "sst+sts"


def test_seconds_are_those_of_all_passes_at_the_speed_of_the_joint_run(proposals):
    one = proposals(FRIENDS)
    assert one.run(("sst",), ("sst",)).seconds == CONFIG.epochs * 1000 / 100
    assert one.run(("sst", "sts"), ("sst", "sts")).seconds == CONFIG.epochs * 2050 / 100


def test_a_configuration_for_some_tasks_drops_settings_of_the_others():
    config = CONFIG.changed(smart_weight={"sst": 1.0, "qqp": 2.0}, lr=3e-5)
    alone = for_tasks(config, ("sts",), {})
    assert (alone.mode, alone.tasks, alone.flat()["lr"]) == ("single", ("sts",), 3e-5)
    assert not alone.regularizers
    assert for_tasks(config.changed(smart_place="words"), ("sts",), {}).regularizers == ()
    objects = (Smart(weight={"sts": 1.0}), Distillation(weight={"sst": 0.5}))
    config = CONFIG.changed(regularizers=objects, teacher=("runs/teacher",))
    alone = for_tasks(config, ("sts",), {})
    assert [one.name for one in alone.regularizers] == ["smart"]
    assert not alone.teacher
    assert not for_tasks(config, ("qqp",), {}).regularizers
    both = for_tasks(config, ("sst", "sts"), {})
    assert both.teacher
    assert both.mode == "multitask"
    assert "qqp" not in json.dumps(both.to_json())


@pytest.mark.parametrize(
    ("settings", "users"),
    [
        ({"label_smoothing": 0.1}, {"sst", "qqp"}),
        ({"class_weights": "effective", "effective_beta": 0.9}, {"sst", "qqp"}),
        ({"focal_gamma": 2.0}, {"sst", "qqp"}),
        ({"class_balanced": True}, {"sst", "qqp"}),
        ({"objective": "scl", "scl_weight": 0.2}, {"sst", "qqp"}),
        ({"similarity_scale": 2.0}, {"sts"}),
        ({"class_weights": {"sst": "effective"}, "effective_beta": 0.9}, {"sst"}),
        ({"select_by": "macro_f1"}, {"sst", "qqp"}),
        ({"select_by": "spearman"}, {"sts"}),
    ],
)
def test_a_setting_of_one_kind_of_task_is_dropped_for_the_others(settings, users):
    config = CONFIG.changed(**settings)
    for task in config.tasks:
        given = for_tasks(config, (task,), {}).given
        found = {key: given[key] for key in settings if given.get(key)}
        assert found == (settings if task in users else {})


@pytest.mark.parametrize("preset", ["scl-moo", "lacon"])
def test_a_preset_with_an_objective_leaves_tasks_without_classes(preset):
    config = RunConfig(tasks=("sst", "sts"), preset=preset)
    alone = for_tasks(config, ("sts",), {})
    assert (alone.objective, alone.class_balanced) == (None, False)
    assert alone.flat()["lr"] == config.flat()["lr"]
    assert for_tasks(config, ("sst",), {}).objective == config.objective


def test_the_sign_of_a_promise_is_that_of_its_interval():
    signs = [Promise(0.0, *ends).sign for ends in ((-1, 1), (0.1, 1), (-1, -0.1), (0, 0))]
    assert signs == [0, 1, -1, 0]


@pytest.fixture(scope="module")
def kept(tmp_path_factory, quick_intervals):
    """The folder of a measurement, and its result; read only."""
    folder = tmp_path_factory.mktemp("measured")
    return folder, measure_affinity(CONFIG, folder, rounds=4)


@pytest.fixture
def measured(kept, tmp_path):
    """A result whose folder, a copy, is `tmp_path`."""
    shutil.copytree(kept[0], tmp_path, dirs_exist_ok=True)
    return kept[1]


def test_advice_is_stored_with_settings_that_train(measured, tmp_path):
    found = measured
    advice = advise(found, CONFIG, tmp_path, seeds=(5,), rates=(1e-4, 3e-4))
    stored = json.loads((tmp_path / "advice.json").read_text())
    assert stored["best"] == advice.best
    assert {run for one in stored["systems"] for run in one["runs"]} == set(stored["seconds"])
    assert {path.stem for path in (tmp_path / "advice").glob("*.json")} == set(stored["seconds"])
    rate = float(next(one.value for one in advice.choices if one.setting == "lr"))
    assert rate in (1e-4, 3e-4)
    for run in advice.runs:
        content = json.loads(run.settings_file(tmp_path).read_text())
        assert RunConfig.from_json(content).to_json() == run.config.to_json()
        settings = run.config.flat()
        assert [settings[key] for key in ("limit", "dev_limit")] == [None, None]
        assert settings["lr"] == settings["head_lr"] == rate
    held_out = json.loads((tmp_path / "rate-0.0003" / "config.json").read_text())
    assert (held_out["protocol"], held_out["head_lr"]) == ("held-out", 3e-4)


def test_promises_of_trained_runs_are_not_replaced(measured, tmp_path):
    found = measured
    advice = advise(found, CONFIG, tmp_path, seeds=(5,))
    advice.runs[0].folder(tmp_path, 5).mkdir(parents=True)
    advise(found, CONFIG, tmp_path, seeds=(5,))  # the same
    with pytest.raises(RunError, match="expected no runs of another or an older advice"):
        advise(found, CONFIG, tmp_path, seeds=(6,))
    assert json.loads((tmp_path / "advice.json").read_text())["seeds"] == [5]
    other = replace(found, estimator="lookahead")
    with pytest.raises(RunError, match="found runs advised by gram; go on with --estimator gram"):
        advise(other, CONFIG, tmp_path, seeds=(5,))


def test_settings_of_an_earlier_advice_are_removed(measured, tmp_path):
    found = measured
    (tmp_path / "advice").mkdir()
    (tmp_path / "advice" / "old.json").write_text("{}")
    advice = advise(found, CONFIG, tmp_path)
    names = {path.stem for path in (tmp_path / "advice").iterdir()}
    assert names == {run.name for run in advice.runs}


def test_advice_needs_the_configuration_of_the_measurement(measured, tmp_path):
    found = measured
    with pytest.raises(SettingsError, match=r"head_lr: expected none with rates, .* found 0.001"):
        advise(found, CONFIG.changed(head_lr=1e-3), tmp_path, rates=(1e-4,))
    few = {"protocol": "few-shot", "shots": 4, "limit": None, "tasks": ("sst", "qqp")}
    with pytest.raises(SettingsError, match=r"protocol: expected files or held-out .* few-shot"):
        advise(found, CONFIG.changed(**few), tmp_path, rates=(1e-4,))
    with pytest.raises(RunError, match="expected the configuration of the measurement, found: lr"):
        advise(found, CONFIG.changed(lr=1e-3), tmp_path)
    with pytest.raises(SettingsError, match="tasks: expected those of the measurement, sst, "):
        advise(found, CONFIG.changed(tasks=("sst", "sts")), tmp_path)


def test_advice_needs_the_joint_run(proposals, tmp_path):
    with pytest.raises(RunError, match="expected the joint run of the measurement"):
        advise(proposals(FRIENDS).found, CONFIG, tmp_path)
