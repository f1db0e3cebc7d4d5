"""Auxiliary tasks: they train with the others, and count nowhere."""

import json
import shutil
from pathlib import Path

import pytest
from plain import kept_weights

from ensemble.runs import tasks_of_run
from multitask.config_tasks import build_tasks, plain_tasks
from multitask.loop.evaluation import selection_score
from multitask.run import complete
from multitask.runs import Run
from multitask.settings.config import RunConfig
from reports.systems import group_runs
from tasks import CS224N, data_folder
from tasks.readers import normalise_text

SAMPLE = data_folder("sample")
CONFIG = RunConfig(
    tasks=("sst2", *CS224N, "mrpc"),
    auxiliary=("mrpc", "sst2"),
    encoder="tiny",
    limit=24,
    dev_limit=10,
    test_limit=4,
    epochs=1,
    steps_per_epoch=2,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auxiliary") / "run"
    complete(CONFIG, folder)
    return folder


def test_an_auxiliary_task_trains_as_any_other(run, tmp_path):
    plain = tmp_path / "plain"
    complete(CONFIG.changed(auxiliary=()), plain)
    assert kept_weights(run) == kept_weights(plain)


def test_it_has_dev_scores_but_no_part_in_the_score_that_selects_the_epoch(run):
    stored = json.loads((run / "metrics.json").read_text())
    dev, (epoch,) = stored["dev"], stored["history"]
    assert set(dev) == {*CONFIG.tasks, "overall", "overall_plain_mean"}
    score = (dev["sst"]["accuracy"] + dev["qqp"]["accuracy"] + (dev["sts"]["pearson"] + 1) / 2) / 3
    assert epoch["selection_score"] == pytest.approx(score)
    assert Run(run).score == pytest.approx(score)
    worse = {name: dict(dev[name]) for name in CONFIG.tasks}
    worse["mrpc"]["accuracy"] = worse["sst2"]["accuracy"] = -5.0
    assert selection_score(worse, build_tasks(CONFIG)) == pytest.approx(score)


def test_it_has_no_prediction_files_and_no_part_in_comparisons(run):
    names = {file.name.split("-")[0] for file in (run / "predictions").iterdir()}
    assert names == {"sst", "qqp", "para", "sts"}
    assert set(tasks_of_run(run)) == set(CS224N)
    (system,) = group_runs([(None, Run(run))])
    assert set(system.tasks) == set(CS224N)


def test_an_auxiliary_task_of_the_leaderboard_leaves_no_overall_score(tmp_path):
    config = CONFIG.changed(tasks=CS224N, auxiliary=("sst",))
    metrics = complete(config, tmp_path / "run")
    assert set(metrics["dev"]) == set(CS224N)
    names = {file.name for file in (tmp_path / "run" / "predictions").glob("*.csv")}
    assert not any(name.startswith("sst-") for name in names)
    assert metrics["history"][0]["dev"].keys() == set(CS224N)


@pytest.fixture
def with_leaks(tmp_path):
    """The sample, with examples of SST's and STS's dev and test in SST-2's and MRPC's train."""
    folder = tmp_path / "data"
    shutil.copytree(SAMPLE, folder)
    tasks = plain_tasks(RunConfig(tasks=("sst", "sts")))
    sentence = tasks["sst"].read(SAMPLE, "dev").texts[0][3]
    append(folder / "glue" / "SST-2" / "train.tsv", f"{sentence.upper()} !\t1")
    pair = [column[5] for column in tasks["sts"].read(SAMPLE, "test").texts]
    return folder, sentence, pair


def append(file: Path, *lines: str) -> None:
    file.write_text(file.read_text("utf-8") + "\n".join(lines) + "\n", "utf-8")


def test_its_examples_in_dev_or_test_of_the_others_are_left_out(with_leaks):
    folder, sentence, pair = with_leaks
    train = folder / "glue" / "MRPC" / "train.tsv"
    first = train.read_text("utf-8").splitlines()[1].split("\t")
    append(train, "\t".join([*first[:-2], pair[1], pair[0]]))

    def read(name, **changes):
        return plain_tasks(CONFIG.changed(**changes))[name].read(folder, "train")

    plain = {name: read(name, auxiliary=()) for name in CONFIG.tasks}
    for name in CONFIG.tasks:
        found, whole = read(name), plain[name]
        assert found.leaked == len(whole) - len(found)
        assert found.leaked >= 1 if name in CONFIG.auxiliary else not found.leaked
    texts = {name: [normalise_text(text) for text in read(name).texts[0]] for name in CONFIG.tasks}
    assert normalise_text(sentence) not in texts["sst2"]
    assert normalise_text(pair[1]) in map(normalise_text, plain["mrpc"].texts[0])
    assert normalise_text(pair[1]) not in texts["mrpc"]
    alone = read("sst2", tasks=("qqp", "sst2"), auxiliary=("sst2",))
    assert normalise_text(sentence) not in map(normalise_text, alone.texts[0]), "of CS224N's too"
    others = {"tasks": ("qqp", "sst2"), "auxiliary": ("sst2",), "drop_leaks": "own"}
    assert read("sst2", **others).texts == alone.texts
