"""Objectives with embeddings of labels: LaCon, LEAM, LSAN and their rivals on the command line."""

import json

import pytest
from run_files import metrics

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")
ALL = ("--mode", "multitask", "--encoder", "tiny", "--epochs", "1")

ONE, JOINT = ("--task", "sst"), ("--task", "mrpc", "--pair", "joint")


@pytest.mark.parametrize(
    ("objective", "task"),
    [
        *((name, JOINT) for name in ("cl", "lsan", "lacon-fusion")),
        *((name, ONE) for name in ("projection", "leam", "lacon")),
    ],
)
def test_every_objective_of_labels_trains_and_is_resumed_from(ran, tmp_path, objective, task):
    folder = tmp_path / "run"
    flags = ("--mode", "single", *task, "--encoder", "tiny", "--objective", objective)
    short = ("--epochs", "1", "--limit", "40", "--micro-batch", "5")
    ran(*flags, *short, "--output", folder)
    again = ran(*flags, *short, "--init", folder, "--output", tmp_path / "again")
    assert f"heads initialised from {folder}: {task[1]}" in again.stdout


@pytest.mark.parametrize(
    ("objective", "combiner"), [("lacon", "pareto-mtl"), ("lacon", "pcgrad"), ("ls", "epo")]
)
def test_objectives_of_several_tasks_are_combined(ran, tmp_path, objective, combiner):
    """EPO wants losses of zero or more, of which pull and push of ls fall short as they are."""
    flags = ("--objective", objective, "--combiner", combiner, "--tasks", "sst", "qqp")
    ran(*ALL, *flags, "--limit", "40", "--output", tmp_path / "run")
    kept = metrics(tmp_path / "run")
    assert sum(kept["combiner_steps"].values()) == kept["steps"] > 0


@pytest.fixture
def own(tmp_path):
    """A file of pairs whose classes are numbers."""
    lines = [f"a film {i},the film {i % 7},{i % 2}" for i in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,class", *lines]) + "\n")
    return f"same={tmp_path}/own.csv:type=classification,text=a,text=b,label=class"


def test_label_attention_leaves_similarities_as_they_are(run, refused, own, tmp_path):
    found = refused(2, "--mode", "single", "--task", own, "--objective", "leam")
    assert "--objective leam: expected single texts or pair joint, found same" in found
    alike = own.replace("same=", "alike=").replace("classification", "similarity")
    flags = ("--tasks", "sst", "--task", alike, "--objective", "leam", "--limit", "20")
    assert run(*ALL, *flags, "--output", tmp_path / "run").returncode == 0
    assert set(metrics(tmp_path / "run")["dev"]["alike"]) == {"pearson", "spearman"}


def test_labels_begin_at_their_names_which_numbers_do_not_have(ran, refused, own, tmp_path):
    named = ("--encoder", "tiny", "--objective", "lacon", "--label-start", "names")
    ran(*SST, *named, "--limit", "40", "--output", tmp_path / "run")
    assert json.loads((tmp_path / "run" / "config.json").read_text())["label_start"] == "names"
    command = ("--mode", "single", "--task", own, *named, "--output", tmp_path / "again")
    line = "--label-start names: expected names of same's classes, found 0, 1"
    assert line in refused(1, *command)
    stars = tmp_path / "stars.csv"
    stars.write_text("a,class\n" + "".join(f"a film {i},{i % 2 + 1}.0\n" for i in range(60)))
    task = f"stars={stars}:type=classification,text=a,label=class"
    assert "found 1.0, 2.0" in refused(1, *command[:3], task, *command[4:])


def test_a_task_without_classes_keeps_pooling_and_regulariser(run, ran, tmp_path):
    folder = tmp_path / "run"
    flags = ("--objective", "lacon-fusion", "--pooling", "max", "--smart-weight", "sts=1")
    short = ("--tasks", "sst", "sts", "--limit", "20")
    ran(*ALL, *flags, *short, "--output", folder)
    config = json.loads((folder / "config.json").read_text())
    assert (config["pooling"], config["smart_weight"]) == ("max", {"sts": 1.0})
    refused = run(*ALL, *flags[:2], "--smart-weight", "sst=1", *short)
    assert (
        "--objective lacon-fusion and --smart-weight of sst: expected at most one" in refused.stderr
    )
