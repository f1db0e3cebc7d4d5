"""The recipe: its runs, and what it leaves."""

import json
import shutil
from pathlib import Path

import pytest
from cell_files import few_words

import tasks.sample
from multitask.config import RunConfig
from studies.best import cells
from studies.study import StudyRequest

SAMPLE = Path(tasks.sample.__file__).parent


def test_runs_differ_and_share_their_beginnings():
    runs = Path("runs")
    every = cells(StudyRequest(RunConfig(mode="single", tasks=()), Path("results"), runs))
    configs = [one.run_config(seed, runs) for one in every for seed in one.seeds]
    assert len({config.digest() + config.tasks[0] for config in configs}) == len(configs) == 9
    starts = {one.config.tasks[0]: one.base_cell and one.base_cell.name for one in every}
    assert starts == {"sst": "phrases", "qqp": "mrpc", "sts": None}
    assert all(config.drop_leaks for config in configs)
    inits = {config.tasks[0]: config.init for config in configs}
    expected = {task: before and f"runs/{before}-seed11711" for task, before in starts.items()}
    assert inits == expected


@pytest.fixture
def data(tmp_path):
    """The sample, and beside it SST-2 and MRPC of a few words."""
    folder = few_words(tmp_path / "data", "SST-2", "MRPC", train=20, dev=20)
    for file in SAMPLE.glob("*.csv"):
        shutil.copy(file, folder)
    first = (SAMPLE / "ids-sst-dev.csv").read_text().splitlines()[1].split("\t")[-2]
    with (folder / "SST-2" / "train.tsv").open("a") as file:
        file.write(f"{first.upper()}\t1\n")  # a sentence of dev: it is left out
    return folder


@pytest.mark.slow
def test_the_recipe(data, reproducing, tmp_path):
    recipe = reproducing("best", "--data", data, "--limit", 16, "--epochs", 1, "--encoder", "tiny")
    status, shown = recipe()
    assert status == 0, shown.err
    assert "sst2: 1 training examples removed" in shown.out
    predictions = {path.name for path in (tmp_path / "runs" / "ensemble" / "predictions").iterdir()}
    assert {f"{stem}-test-output.csv" for stem in ("sst", "para", "sts")} <= predictions
    text = (tmp_path / "best.md").read_text()
    kept = json.loads((tmp_path / "best" / "ensemble.json").read_text())
    assert f"overall {kept['dev']['overall']:.4f}" in text
    assert {len(part["weights"]) for part in kept["members"].values()} == {3}
    assert "| soup of sts |" in text
    assert (tmp_path / "runs" / "soup-qqp" / "checkpoint" / "best").exists()
    # The folders of runs are not kept; what was made of them is.
    shutil.rmtree(tmp_path / "runs")
    assert recipe()[0] == 0
    assert (tmp_path / "best.md").read_text() == text
