"""--objective, regularisers and --protocol: runs, and the settings that reach them."""

import re

import pytest
from run_files import metrics, telemetry

from common.errors import SettingsError
from common.settings import methods
from multitask.config_tasks import build_tasks
from multitask.settings.config import RunConfig
from tasks import TASK_NAMES, build_task
from tasks.built_in import WITH_CLASSES
from tasks.objectives import Objective, with_objective

TINY = ("--encoder", "tiny", "--epochs", "1")
ALL = ("--mode", "multitask", *TINY)


def test_tasks_with_classes_are_known_without_building_them():
    having = [name for name in TASK_NAMES if build_task(name).kind.classes]
    assert having == [*WITH_CLASSES]


@pytest.mark.parametrize("name", methods(Objective))
def test_an_objective_builds_the_heads_and_terms_that_it_declares(name):
    objective = methods(Objective)[name]()
    task = with_objective(build_task("rte", pair="joint"), objective)
    task.build_head(12)
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
    ("flags", "objectives"),
    [
        ("--objective epo --pcgrad", "sst/cross_entropy sst/pull sst/push"),
        # EPO needs losses of zero or more; pull and push of ls are shifted.
        ("--objective ls --combiner epo --tasks sst qqp", "sst qqp"),
    ],
)
def test_objectives_of_tasks_are_combined(flags, objectives, small, run_ok, tmp_path):
    result = run_ok(*ALL, "--data", small, *flags.split(), "--output", tmp_path / "run")
    stored = metrics(tmp_path / "run")
    assert sum(stored["combiner_steps"].values()) == stored["steps"] > 0
    names = list(telemetry(tmp_path / "run")[0]["weights"])
    assert names[: len(objectives.split())] == objectives.split()
    assert "steps: " in result.stdout


@pytest.fixture
def sst2(tmp_path):
    folder = tmp_path / "data" / "SST-2"
    folder.mkdir(parents=True)
    for split, count in (("train", 60), ("dev", 30)):
        rows = "".join(f"words of number {i}\t{i % 2}\n" for i in range(count))
        (folder / f"{split}.tsv").write_text(f"sentence\tlabel\n{rows}")
    return ("--mode", "single", "--task", "sst2", *TINY, "--data", folder.parent)


def test_protocols_split_labelled_examples(run_ok, sst2, tmp_path):
    output = tmp_path / "run"
    few = ("--protocol", "few-shot", "--shots", "8")
    result = run_ok(*sst2, *few, "--output", output)
    assert set(metrics(output)["test"]["sst2"]) == {"accuracy", "f1", "matthews"}
    assert re.search("dev +majority +test\n", result.stdout)
    for split in ("dev", "test"):
        lines = (output / "predictions" / f"sst2-{split}-output.csv").read_text().splitlines()
        assert len(lines) == 15 + 1


def test_training_examples_in_dev_of_any_task_are_removed(run_ok, sst2, tmp_path):
    (tmp_path / "data" / "SST-2" / "dev.tsv").write_text("sentence\tlabel\nWords of number 7!\t1\n")
    rows = ["\tid\tsentence\tsentiment", "0\ta\twords of number 8\t1", "1\tb\tWords of number 9\t1"]
    (tmp_path / "data" / "ids-sst-dev.csv").write_text("\n".join(rows) + "\n")
    result = run_ok(*sst2, "--output", tmp_path / "run", "--drop-leaks", "all")
    line = "left out, also in dev or test: 3 training examples"
    assert line in result.stdout
