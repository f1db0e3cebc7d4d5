"""Objectives with embeddings of labels: LaCon, LEAM, LSAN and their rivals on the command line."""

import json

import pytest

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")
ALL = ("--mode", "multitask", "--encoder", "tiny", "--epochs", "1")

ONE, JOINT = ("--task", "sst"), ("--task", "mrpc", "--pair", "joint")


@pytest.mark.parametrize(
    ("objective", "task"),
    [
        ("cl", JOINT),
        ("projection", ONE),
        ("leam", ONE),
        ("lsan", JOINT),
        ("lacon", ONE),
        ("lacon-fusion", JOINT),
    ],
)
def test_every_objective_of_labels_trains_and_is_resumed_from(run, tmp_path, objective, task):
    folder = tmp_path / "run"
    flags = ("--mode", "single", *task, "--encoder", "tiny", "--objective", objective)
    short = ("--epochs", "1", "--limit", "40", "--micro-batch", "5")
    found = run(*flags, *short, "--output", folder)
    assert found.returncode == 0, found.stderr
    again = run(*flags, *short, "--init", folder, "--output", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert f"heads initialised from {folder}: {task[1]}" in again.stdout


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--label-heads", "2"), "--label-heads: expected objective lacon or lacon-fusion"),
        (("--objective", "leam", "--label-terms", "icl"), "--label-terms: expected objective"),
        (("--objective", "lacon", "--scl-weight", "0.5"), "--scl-weight: expected objective"),
        (
            ("--objective", "lacon", "--label-terms", "icl", "--label-spread", "1"),
            "--label-spread: expected ler among --label-terms, found 1.0",
        ),
        (("--objective", "lsan", "--smart-weight", "1"), "--objective lsan and --smart-weight"),
        (
            ("--objective", "lacon-fusion", "--freeze-encoder"),
            "-encoder: expected at most one",
        ),
        (
            ("--objective", "cl", "--probe-epochs", "1", "--epochs", "2"),
            "--objective cl and --probe-epochs: expected at most one",
        ),
        (("--objective", "lacon", "--label-terms", "ler"), "expected icl or lcl, found only ler"),
        (
            ("--objective", "lacon", "--label-terms", "lcl", "--label-heads", "2"),
            "--label-heads: expected icl among --label-terms, found 2",
        ),
        (
            ("--objective", "lacon", "--sst-head", "softmax"),
            "--sst-head: expected another objective than lacon",
        ),
        (("--objective", "leam", "--pooling", "max"), "--pooling: expected another objective"),
        (
            ("--objective", "lacon", "--label-terms", "lcl", "--batch-size", "1"),
            "--batch-size: expected 2 or more without icl among --label-terms, found 1",
        ),
        (
            ("--objective", "projection", "--projection-layers", "0"),
            "--projection-layers: expected 1 or more",
        ),
    ],
)
def test_flags_of_labels_that_make_no_sense_are_refused(refused, flags, expected):
    assert expected in refused(2, *SST, *flags)


@pytest.mark.parametrize("task", ["qqp", "mrpc"])
def test_label_attention_wants_one_text(refused, task):
    argv = ("--mode", "single", "--task", task, "--objective", "leam")
    found = refused(2, *argv)
    assert f"--objective leam: expected single texts or pair joint, found {task}" in found
    joint = ("--task", "qqp", "--pair", "joint", "--qqp-loss", "with-contrastive")
    line = refused(2, "--mode", "single", *joint)
    assert line.startswith(("run.py: --qqp-loss", "run.py: --pair"))


@pytest.mark.parametrize("combiner", ["epo", "uncertainty", "pareto-mtl", "pcgrad"])
def test_several_tasks_have_labels_of_their_own_under_any_combiner(run, tmp_path, combiner):
    flags = (
        "--objective",
        "lacon",
        "--combiner",
        combiner,
        "--limit",
        "40",
        "--tasks",
        "sst",
        "qqp",
    )
    folder = tmp_path / "run"
    found = run(*ALL, *flags, "--output", folder)
    assert found.returncode == 0, found.stderr
    weights = json.loads((folder / "metrics.json").read_text())["combiner_steps"]
    assert sum(weights.values()) > 0


def test_labels_may_begin_at_their_names(run, tmp_path):
    folder = tmp_path / "run"
    flags = ("--objective", "lacon", "--label-start", "names", "--limit", "40")
    found = run(*SST, *flags, "--output", folder)
    assert found.returncode == 0, found.stderr
    assert json.loads((folder / "config.json").read_text())["label_start"] == "names"


@pytest.fixture
def own(tmp_path):
    """A file of pairs whose classes are numbers."""
    lines = [f"a film {i},the film {i % 7},{i % 2}" for i in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,class", *lines]) + "\n")
    return f"same={tmp_path}/own.csv:type=classification,text=a,text=b,label=class"


def test_own_pairs_are_told_how_they_become_one_text(refused, own):
    found = refused(2, "--mode", "single", "--task", own, "--objective", "leam")
    assert "--objective leam: expected single texts or pair joint, found same" in found


def test_similarities_are_left_alone_by_label_attention(run, own, tmp_path):
    alike = own.replace("same=", "alike=").replace("classification", "similarity")
    flags = ("--tasks", "sst", "--task", alike, "--objective", "leam", "--limit", "20")
    found = run(*ALL, *flags, "--output", tmp_path / "run")
    assert found.returncode == 0, found.stderr


def test_labels_that_are_numbers_have_no_names(refused, own, tmp_path):
    command = ("--mode", "single", "--task", own, "--encoder", "tiny", "--objective", "lacon")
    found = refused(1, *command, "--label-start", "names", "--output", tmp_path / "run")
    assert "--label-start names: expected names of same's classes, found 0, 1" in found
    stars = tmp_path / "stars.csv"
    stars.write_text("a,class\n" + "".join(f"a film {i},{i % 2 + 1}.0\n" for i in range(60)))
    task = f"stars={stars}:type=classification,text=a,label=class"
    again = (*command[:3], task, *command[4:], "--label-start", "names")
    assert "found 1.0, 2.0" in refused(1, *again, "--output", tmp_path / "again")


def test_a_task_without_classes_keeps_pooling_and_regulariser(run, tmp_path):
    folder = tmp_path / "run"
    flags = ("--objective", "lacon-fusion", "--pooling", "max", "--smart-weight", "sts=1")
    short = ("--tasks", "sst", "sts", "--limit", "20")
    found = run(*ALL, *flags, *short, "--output", folder)
    assert found.returncode == 0, found.stderr
    config = json.loads((folder / "config.json").read_text())
    assert (config["pooling"], config["smart_weight"]) == ("max", {"sts": 1.0})
    refused = run(*ALL, *flags[:2], "--smart-weight", "sst=1", *short)
    assert (
        "--objective lacon-fusion and --smart-weight of sst: expected at most one" in refused.stderr
    )
