"""--objective: contrastive terms in single and multi-task runs, and what contradicts them."""

import json

import pytest

from common.errors import SettingsError
from multitask.assembly import build_tasks
from multitask.config import RunConfig
from multitask.methods import methods
from multitask.objective_rules import has_classes
from tasks import TASK_NAMES, build_task
from tasks.heads import InitializesFromNames, PoolsTokens
from tasks.objectives import Objective, with_objective

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")
ALL = ("--mode", "multitask", "--encoder", "tiny", "--epochs", "1")
OF_TASKS = {
    name: method for name, method in methods("objective").items() if issubclass(method, Objective)
}


def test_objectives_of_tasks_and_tasks_with_classes():
    for name in TASK_NAMES:
        config = RunConfig(mode="single", tasks=(name,))
        assert has_classes(config, name) == (build_task(name).kind.classes is not None)


@pytest.mark.parametrize("name", OF_TASKS)
def test_an_objective_is_what_it_declares(name):
    objective = OF_TASKS[name]()
    joint = build_task("rte", pair="joint")
    task = with_objective(joint, objective)
    head = task.build_head(12)
    assert objective.own_pooling == isinstance(head, PoolsTokens)
    assert ("label_start" in OF_TASKS[name].by_key()) == isinstance(head, InitializesFromNames)
    assert objective.terms_of("rte") == task.objectives
    plain = build_task("sst").build_head(12)
    parts = with_objective(build_task("sst"), objective).build_head(12).modules()
    assert objective.own_head == (not any(type(part) is type(plain) for part in parts))
    settings = {"tasks": ("rte",), "objective": objective}
    if objective.single_embedding:
        with pytest.raises(SettingsError, match="single texts"):
            RunConfig(**settings)
    else:
        assert build_tasks(RunConfig(**settings))["rte"].vectors == 2


@pytest.mark.parametrize(
    ("flags", "config"),
    [
        (
            ("--objective", "ls", "--scl-preference", "0.25", "--per-class"),
            {"scl_preference": [0.25, 0.75], "per_class": True, "gradients": "parameters"},
        ),
        (
            ("--objective", "epo", "--scl-inputs", "combined"),
            {"objective": "epo", "scl_inputs": "combined", "gradients": "representation"},
        ),
        (("--objective", "ce"), {"objective": None}),
    ],
)
def test_runs_of_one_task(ran, data, tmp_path, flags, config):
    ran(*SST, "--data", data, *flags, "--output", tmp_path / "run")
    kept = json.loads((tmp_path / "run" / "config.json").read_text())
    assert {key: kept[key] for key in config} == config


def test_a_multi_task_run_with_surgery_between_the_tasks(ran, data, tmp_path):
    flags = ("--objective", "epo", "--pcgrad")
    found = ran(*ALL, "--data", data, *flags, "--output", tmp_path / "run")
    lines = (tmp_path / "run" / "telemetry.jsonl").read_text().splitlines()
    names = list(json.loads(lines[0])["weights"])
    assert names[:3] == ["sst/cross_entropy", "sst/pull", "sst/push"]
    assert names[-1] == "sts"
    assert "steps: " in found.stdout


# Which examples


def glue_file(count):
    rows = "".join(f"words of number {i}\t{i % 2}\n" for i in range(count))
    return f"sentence\tlabel\n{rows}"


@pytest.fixture
def sst2(tmp_path):
    folder = tmp_path / "data" / "SST-2"
    folder.mkdir(parents=True)
    (folder / "train.tsv").write_text(glue_file(60))
    (folder / "dev.tsv").write_text(glue_file(30))
    return ("--mode", "single", "--task", "sst2", "--encoder", "tiny", "--data", folder.parent)


@pytest.mark.parametrize(
    ("flags", "dev", "test"), [(("few-shot", "--shots", "8"), 15, 15), (("held-out",), 6, 30)]
)
def test_labelled_test_examples_are_scored(ran, sst2, tmp_path, flags, dev, test):
    output = tmp_path / "run"
    found = ran(*sst2, "--epochs", "2", "--protocol", *flags, "--output", output)
    kept = json.loads((output / "metrics.json").read_text())
    assert set(kept["test"]["sst2"]) == {"accuracy", "f1", "matthews"}
    for split, count in (("dev", dev), ("test", test)):
        lines = (output / "predictions" / f"sst2-{split}-output.csv").read_text().splitlines()
        assert len(lines) == count + 1
    assert "dev       test" in found.stdout
    ids = json.loads((output / "ids.json").read_text())["sst2"]
    drawn = {split: set(several.split()) for split, several in ids.items()}
    assert (len(drawn["dev"]), len(drawn["test"])) == (dev, test)
    assert len(drawn["train"]) == (8 if "few-shot" in flags else 54)


def test_more_shots_than_examples(refused, sst2):
    flags = ("--protocol", "few-shot", "--shots", "200")
    expected = "expected 100 examples of class negative for 200 shots, found 30"
    assert expected in refused(1, *sst2, *flags)


@pytest.mark.parametrize(("of", "left"), [((), 3), (("all",), 3), (("own",), 1)])
def test_training_examples_in_dev_of_other_tasks_are_left_out_where_asked_for(
    run, sst2, tmp_path, of, left
):
    (tmp_path / "data" / "SST-2" / "train.tsv").write_text(glue_file(60))
    (tmp_path / "data" / "SST-2" / "dev.tsv").write_text("sentence\tlabel\nWords of number 7!\t1\n")
    rows = ["\tid\tsentence\tsentiment", "0\ta\twords of number 8\t1", "1\tb\tWords of number 9\t1"]
    (tmp_path / "data" / "ids-sst-dev.csv").write_text("\n".join(rows) + "\n")
    found = run(*sst2, "--epochs", 1, "--output", tmp_path / "run", "--drop-leaks", *of)
    assert f"{left} training examples removed because they are in dev or test" in found.stdout, (
        found.stderr
    )
