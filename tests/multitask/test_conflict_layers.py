"""Branches: layers of single tasks, chosen by hand or by the conflicts that a run has measured."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tolerances import assert_near_in_norm

import cli
from common.errors import RunError, SettingsError
from multitask import RunConfig, conflict_layers
from multitask.adapters import Copies
from multitask.conflict_layers import layer_cosines, parameter_ratio, with_conflict_layers
from multitask.loop.streams import next_batches
from multitask.loop.telemetry import read_steps
from multitask.storage.run_folder import RunFolder

TASKS = ("sst", "qqp", "sts")
SHORT = ("--encoder", "tiny", "--epochs", "2", "--limit", "40", "--dev-limit", "20")


def gradient_of(trainer):
    rows = np.array([[*trainer.tasks].index(task) for task in TASKS])
    return trainer.gradient(next_batches(trainer.streams, rows))


def flat(parameters):
    return torch.cat([one.grad.flatten() for one in parameters])


def line(**layers):
    """Return a line of telemetry; `layer_1` is the cosine of sst and qqp in layer 1."""
    pairs = {name.replace("_", " "): {"sst and qqp": cosine} for name, cosine in layers.items()}
    return {"layers": pairs}


def cosines(**by_pair):
    return {"layers": {"layer 1": {k.replace("_", " and "): v for k, v in by_pair.items()}}}


@pytest.fixture(scope="module")
def joint(tmp_path_factory):
    """A joint run of three tasks; read only."""
    folder = tmp_path_factory.mktemp("joint") / "run"
    assert cli.main(["--mode", "multitask", "--pcgrad", *SHORT, "--output", str(folder)]) == 0
    return folder


@pytest.fixture
def measured(tmp_path, joint):
    """Return a function that makes a copy of the joint run with other steps."""

    def of(lines):
        folder = tmp_path / "measured"
        folder.mkdir()
        for one in joint.iterdir():
            if one.name != "telemetry.jsonl":
                (folder / one.name).symlink_to(one)
        rows = [json.dumps(one | {"step": step}) + "\n" for step, one in enumerate(lines, 1)]
        RunFolder(folder).steps.write_text("".join(rows))
        return RunConfig(
            tasks=("sst", "qqp"),
            encoder="tiny",
            init=str(folder),
            adapter=Copies(conflict_layers=1),
        )

    return of


def test_the_gradients_of_the_copies_are_the_parts_of_the_shared_gradient(make_trainer):
    """With a plain sum; losses and all other gradients are the same."""
    plain, branched = (
        make_trainer(dropout=False, combiner="sum", **more)
        for more in ({}, {"adapter": Copies(layers=(2,))})
    )
    expected, found = gradient_of(plain), gradient_of(branched)
    assert np.array_equal(found.losses, expected.losses)
    layers = [trainer.model.encoder.layers for trainer in (plain, branched)]
    assert torch.equal(flat(layers[1][0].parameters()), flat(layers[0][0].parameters()))
    assert all(one.grad is None for one in layers[1][1].parameters())
    own = [flat(branched.model.adapters[task].parameters()) for task in TASKS]
    terms = 10 * sum(one.numel() for one in own)
    assert_near_in_norm(sum(own), flat(layers[0][1].parameters()), terms)


def test_layers_that_no_task_uses_are_neither_trained_nor_counted_nor_measured(
    joint, tmp_path, capsys
):
    folder = tmp_path / "run"
    flags = ("--init", str(joint), "--branch", "2", "--pcgrad", *SHORT)
    assert cli.main(["--mode", "multitask", *flags, "--output", str(folder)]) == 0
    before, after = (
        load_file(RunFolder(one).weights() / "model.safetensors") for one in (joint, folder)
    )
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {name for name in before if "layer.1." in name}
    counts = {
        one: json.loads((one / "metrics.json").read_text())["parameters"] for one in (joint, folder)
    }
    layer = sum(value.numel() for name, value in before.items() if "layer.1." in name)
    assert counts[folder]["shared"] == counts[joint]["shared"] - layer
    assert [one["adapter"] for one in counts[folder]["tasks"].values()] == [layer] * 3
    lines = list(read_steps(RunFolder(folder).steps))
    assert lines
    assert all(set(one["layers"]) == {"embeddings", "layer 1"} for one in lines)


def test_tasks_without_a_copy_go_on_sharing_the_layer(make_trainer):
    trainer = make_trainer(combiner="pcgrad", adapter=Copies(layers=(2,), only=("sts",)))
    result = gradient_of(trainer)
    shared = flat(trainer.model.encoder.layers[1].parameters())
    assert shared.any()
    assert list(trainer.model.adapters) == ["sts"]
    place = TASKS.index("sts")
    gram = result.grams["layer 2"]
    assert not gram[place].any()
    assert gram[0, 1] != 0


def test_layers_are_ranked_by_the_mean_cosine_between_tasks():
    lines = [line(layer_1=0.1, layer_2=-0.25), line(layer_1=0.3, layer_2=0.0), {"losses": {}}]
    lowest, highest = layer_cosines(lines, TASKS, ["sst"])
    assert (lowest.layer, highest.layer) == (2, 1)
    assert (lowest.mean, lowest.steps) == (pytest.approx(-0.125), 2)
    assert lowest.error == pytest.approx(0.125)
    assert not lowest.conflicts, "the mean is within two standard errors of zero"
    (one,) = layer_cosines([line(layer_1=-0.2), line(layer_1=-0.21)], TASKS, ["qqp"])
    assert one.conflicts


def test_only_pairs_that_the_adapters_separate_count():
    every = {"sst_qqp": -0.5, "sst_sts": 0.2, "qqp_sts": 0.4, "sst/push_sst/pull": -1.0}
    three = ["sst", "qqp", "sts"]
    (one,) = layer_cosines([cosines(**every)] * 2, three, ["sts"])
    assert one.mean == pytest.approx(0.3)
    assert layer_cosines([cosines(sst_qqp=-0.5)] * 2, three, ["sts"]) == []
    (two,) = layer_cosines([cosines(**every)] * 2, ["sst", "sts"])
    assert two.mean == pytest.approx(0.2), "tasks of the start that the run does not have"
    (both,) = layer_cosines([cosines(**every)] * 2, three)
    assert both.mean == pytest.approx((-0.5 + 0.2 + 0.4) / 3)


def test_the_layers_with_the_most_conflict_are_chosen(measured):
    lines = [line(layer_1=-0.1 + noise, layer_2=0.2 + noise) for noise in (0, 0.01, 0.02)]
    config, shown = with_conflict_layers(measured(lines))
    assert config.adapter == Copies(layers=(1,))
    assert shown.startswith(
        "adapters in 1 of 2 layers, by the mean cosine of gradients: layer 1 -0."
    )
    assert with_conflict_layers(config) == (config, None)


def test_auto_takes_layers_with_a_significant_conflict_within_its_budget(measured):
    lines = [line(layer_1=-0.1 + noise, layer_2=0.2 + noise) for noise in (0, 0.01, 0.02)]
    auto = measured(lines).changed(adapter=Copies(conflict_layers="auto"))
    assert parameter_ratio(auto, (1,)) < 1.3
    found, _ = with_conflict_layers(auto)
    assert found.adapter.layers == (1,)


def test_auto_leaves_out_layers_beyond_its_budget(measured, monkeypatch):
    lines = [line(layer_1=-0.1 + noise, layer_2=-0.2 + noise) for noise in (0, 0.01, 0.02)]
    auto = measured(lines).changed(adapter=Copies(conflict_layers="auto"))
    monkeypatch.setattr(
        conflict_layers, "parameter_ratio", lambda config, layers: 1 + 0.2 * len(layers)
    )
    found, _ = with_conflict_layers(auto)
    assert found.adapter.layers == (2,), "the strongest conflict, and no second layer"
    monkeypatch.setattr(conflict_layers, "parameter_ratio", lambda config, layers: 1.4)
    with pytest.raises(
        SettingsError, match=r"expected at most 1.3 times the parameters, found 1.40"
    ):
        with_conflict_layers(auto)


def test_auto_refuses_gradients_without_a_conflict(measured):
    config = measured([line(layer_1=0.1, layer_2=0.2)] * 2)
    with pytest.raises(RunError, match=r"expected a layer whose gradients conflict significantly"):
        with_conflict_layers(config.changed(adapter=Copies(conflict_layers="auto")))


def test_the_parameters_of_layers_without_use_do_not_count(joint):
    config = RunConfig(tasks=TASKS, encoder="tiny", init=str(joint), adapter=Copies(layers=(2,)))
    weights = load_file(RunFolder(joint).weights() / "model.safetensors")
    whole = sum(value.numel() for value in weights.values())
    layer = sum(value.numel() for name, value in weights.items() if "layer.1." in name)
    assert parameter_ratio(config, (2,)) == pytest.approx(1 + 2 * layer / whole)
    only = config.changed(adapter=Copies(layers=(2,), only=("sts",)))
    assert parameter_ratio(only, (2,)) == pytest.approx(1 + layer / whole)


def test_too_many_layers_and_runs_without_cosines_are_refused(measured, joint):
    config = measured([line(layer_1=0.1, layer_2=0.2)] * 2)
    with pytest.raises(
        SettingsError, match="expected at most 2, the number of measured layers, found 9"
    ):
        with_conflict_layers(config.changed(adapter=Copies(conflict_layers=9)))
    RunFolder(Path(config.init)).steps.write_text("")
    with pytest.raises(RunError, match="expected cosines by layer between sst, qqp, found none"):
        with_conflict_layers(config)


def test_the_choice_is_stored_and_a_run_resumes_with_it(joint, tmp_path, capsys):
    folder = tmp_path / "run"
    flags = ["--init", str(joint), "--adapter", "copies", "--adapter-conflict-layers", "1"]
    command = ["--mode", "multitask", *flags, *SHORT, "--output", str(folder)]
    assert cli.main(command) == 0
    stored = json.loads((folder / "config.json").read_text())
    shown = capsys.readouterr().out
    assert (stored["adapter_conflict_layers"], len(stored["adapter_layers"])) == (None, 1)
    assert "adapters in 1 of 2 layers, by the mean cosine of gradients: layer" in shown
    assert cli.main([*command, "--resume"]) == 0
    assert "holds this run, finished" in capsys.readouterr().out


def test_a_finished_run_with_chosen_layers_needs_its_start_no_more(joint, tmp_path, capsys):
    start, folder = tmp_path / "start", tmp_path / "run"
    shutil.copytree(joint, start)
    flags = ["--init", str(start), "--encoder", "tiny", "--adapter", "copies"]
    command = ["--mode", "multitask", *flags, *SHORT[2:], "--output", str(folder)]
    assert cli.main([*command, "--adapter-conflict-layers", "1"]) == 0
    shutil.rmtree(start)
    capsys.readouterr()
    assert cli.main([*command, "--adapter-conflict-layers", "1"]) == 0
    assert "holds this run, finished" in capsys.readouterr().out
    assert cli.main([*command, "--adapter-conflict-layers", "2"]) == 1, "another choice"


def test_layers_that_were_chosen_by_hand_are_not_taken_for_the_choice_by_conflicts(measured):
    steps = 2 * [line(layer_1=-0.5, layer_2=0.5)]
    config, shown = with_conflict_layers(measured(steps), {"adapter_layers": [2]})
    assert (config.adapter.layers, shown is not None) == ((1,), True)
    again, shown = with_conflict_layers(
        config.changed(adapter=Copies(conflict_layers=1)), {"adapter_layers": [1]}
    )
    assert (again.adapter.layers, shown) == ((1,), None)
    (Path(config.init) / "checkpoint").unlink()
    auto = config.changed(adapter=Copies(conflict_layers="auto"))
    assert with_conflict_layers(auto, {"adapter_layers": [2]})[0].adapter.layers == (2,)


def test_branch_replaces_layers_and_keeps_the_adapter_of_a_file_of_settings(tmp_path, capsys):
    file, folder = tmp_path / "settings.json", tmp_path / "run"
    file.write_text(json.dumps({"adapter": "lora", "adapter_rank": 4, "adapter_layers": [1]}))
    command = ["--mode", "multitask", *SHORT, "--config", str(file), "--output", str(folder)]
    assert cli.main([*command, "--branch", "top-1"]) == 0
    stored = json.loads((folder / "config.json").read_text())
    kept = [stored[key] for key in ("adapter", "adapter_layers", "adapter_top_layers")]
    assert kept == ["lora", [], 1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--branch", "top-x"], "--branch: expected auto, top-K such as top-2, or numbers"),
        (["--branch", "auto", "2"], "--branch: expected auto, top-K"),
        (["--branch", "2", "2"], "--adapter-layers: expected each layer once, found 2 twice"),
        (["--branch", "auto"], "--adapter-conflict-layers: expected --init"),
        (
            ["--branch", "2", "--adapter-layers", "1"],
            "--branch and --adapter-layers: expected",
        ),
        (["--branch", "2", "--adapter-only", "mrpc"], "--adapter-only: expected one of sst"),
    ],
)
def test_wrong_branches_are_refused(flags, message, capsys, tmp_path):
    command = ["--mode", "multitask", *SHORT, *flags, "--output", str(tmp_path / "run")]
    with pytest.raises(SystemExit):
        cli.main(command)
    assert message in capsys.readouterr().err


def test_layers_of_conflict_and_by_number_are_one_or_the_other():
    with pytest.raises(SettingsError, match="adapter_layers and adapter_conflict_layers"):
        Copies(layers=(1,), conflict_layers="auto")
